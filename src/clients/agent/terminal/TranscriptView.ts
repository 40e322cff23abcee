import { type Component, Markdown } from "@earendil-works/pi-tui"
import { checked, lastLines, wrapped } from "./Lines.ts"
import type { Item, MessageItem, MessagePart, TerminalState, ToolItem } from "./TerminalState.ts"
import { terminalLimits } from "./TerminalState.ts"
import type { Theme } from "./Theme.ts"
import { drawTool } from "./ToolLines.ts"

interface Drawn {
  readonly look: string
  readonly lines: ReadonlyArray<string>
}

/**
 * The conversation. Lines above the visible part cannot be drawn again without clearing the terminal's memory, so an
 * item changes only when something happens to it, never because time passes.
 */
export class TranscriptView implements Component {
  readonly #theme: Theme
  readonly #state: () => TerminalState
  #drawn = new WeakMap<Item, Drawn>()
  #markdown = new WeakMap<MessagePart, Markdown>()

  constructor(theme: Theme, state: () => TerminalState) {
    this.#theme = theme
    this.#state = state
  }

  invalidate(): void {
    this.#drawn = new WeakMap()
    this.#markdown = new WeakMap()
  }

  render(width: number): Array<string> {
    const { expanded, forgotten, items } = this.#state()
    const running = items.findLast((item) => item.kind === "tool" && item.progress === "running")
    const lines: Array<string> =
      forgotten === 0 ? [] : [this.#theme.dim(`… ${forgotten} earlier parts are not shown any more`)]
    items.forEach((item, index) => {
      const look = `${width} ${expanded.thinking} ${expanded.tools} ${item === running}`
      const drawn = this.#drawn.get(item)
      const fresh = drawn?.look === look ? drawn : { look, lines: this.#fit(item, width, item === running) }
      if (fresh !== drawn) this.#drawn.set(item, fresh)
      if (fresh.lines.length === 0) return
      if (!(item.kind === "tool" && compact(items[index - 1]))) lines.push("")
      for (const line of fresh.lines) lines.push(line)
    })
    return lines
  }

  #fit(item: Item, width: number, tail: boolean): ReadonlyArray<string> {
    return this.#draw(item, width, tail).map((line) => checked(line, width))
  }

  #draw(item: Item, width: number, tail: boolean): ReadonlyArray<string> {
    const theme = this.#theme
    switch (item.kind) {
      case "prompt":
        return [
          ...wrapped(item.text, width - 2).map((line) => theme.bold(line)),
          ...(item.files.length === 0 ? [] : [theme.dim(`with ${item.files.join(", ")}`)])
        ].map((line) => `${theme.accent("▌")} ${line}`)
      case "message":
        return this.#message(item, width)
      case "tool": {
        const whole = this.#state().expanded.tools
        return drawTool(item, { theme, width, whole, tail })
      }
      case "notice": {
        const color = { info: theme.dim, warning: theme.warning, error: theme.bad }[item.level]
        return wrapped(item.text, width).map(color)
      }
      default:
        return []
    }
  }

  #message(item: MessageItem, width: number): ReadonlyArray<string> {
    const drawn = item.parts.map((part, index) =>
      part.type === "thinking"
        ? this.#thought(part, width, item.progress === "open" && index === item.parts.length - 1)
        : this.#text(part, width)
    )
    const shown = drawn.filter((lines) => lines.length > 0)
    const lines = shown.flatMap((part, index) => (index === 0 ? part : ["", ...part]))
    return item.progress === "left" && lines.length > 0 ? [...lines, this.#theme.dim("… broken off")] : lines
  }

  #text(part: MessagePart, width: number): ReadonlyArray<string> {
    if (part.text.trim() === "") return []
    const known = this.#markdown.get(part)
    const markdown =
      known ??
      // Formulas in prices ("$5 to $10") are more often none.
      new Markdown(part.text.trim(), 0, 0, this.#theme.markdown, undefined, { renderLatex: false })
    if (known === undefined) this.#markdown.set(part, markdown)
    return markdown.render(width).map((line) => line.trimEnd())
  }

  #thought(part: MessagePart, width: number, grows: boolean): ReadonlyArray<string> {
    const { dim, italic } = this.#theme
    const text = part.text.trim()
    if (text === "") return []
    const look = (line: string): string => dim(italic(line))
    if (this.#state().expanded.thinking) return wrapped(text, width).map(look)
    if (grows) {
      const { lines } = lastLines(wrapped(text, width - 2).join("\n"), terminalLimits.thinkingLines)
      return lines.map((line) => look(`  ${line}`))
    }
    const words = text.split(/\s+/).length
    return [dim(`▹ thought, ${words} word${words === 1 ? "" : "s"} (Ctrl-T shows)`)]
  }
}

/** Calls stand close together, unless one brings lines of its own. */
const compact = (before: Item | undefined): before is ToolItem => before?.kind === "tool"
