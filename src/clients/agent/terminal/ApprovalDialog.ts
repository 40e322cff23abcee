import { type Component, matchesKey, visibleWidth } from "@earendil-works/pi-tui"
import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"
import { type Choice, choicesOf } from "./ApprovalChoices.ts"
import {
  type Answering,
  beginAnswering,
  press,
  scrolled,
  settle,
  settlesAfter,
  type Step,
  type View
} from "./ApprovalKeys.ts"
import { fitted, folded, spread, wrapped } from "./Lines.ts"
import { safeLine, strictText } from "./SafeText.ts"
import type { Theme } from "./Theme.ts"

/** In a smaller window nothing can be allowed. */
const smallestWindow = { columns: 32, rows: 10 } as const
/** In a lower window the question has all lines to itself. */
export const roomyRows = 16
/** Lines of what would run that are seen at once, at least. */
const detailRows = 3

interface ApprovalDialogOptions {
  readonly ask: ApprovalAsk
  /** how many wait, this one included */
  readonly waiting: () => number
  readonly theme: Theme
  /** of the window */
  readonly size: () => { readonly columns: number; readonly rows: number }
  readonly now: () => number
  /** Runs something so many milliseconds later; gives how to call it off. */
  readonly later: (millis: number, run: () => void) => () => void
  /** the editor's text */
  readonly text: () => string
  /** keys that were meant for the editor */
  readonly typed: (data: string) => void
  readonly answer: (approval: Approval) => void
}

/** The frame around the lines of the command. */
interface Frame {
  readonly above: ReadonlyArray<string>
  readonly below: ReadonlyArray<string>
}

/**
 * Asks for the user's word. All of what would run and of what a yes would cover has to have been on the screen before it
 * counts, keys that were meant for the editor do not answer, and nothing that lasts longer than once is given by one key.
 */
export class ApprovalDialog implements Component {
  readonly #options: ApprovalDialogOptions
  readonly #choices: ReadonlyArray<Choice>
  #state: Answering
  #callOff: () => void = () => undefined
  #top = 0
  #seen = 0
  /** lines of what would run that found room */
  #room = detailRows
  #lines: ReadonlyArray<string> = []
  /** the size that was drawn last; nothing was yet: undefined */
  #drawn: { readonly columns: number; readonly rows: number } | undefined
  #shown: number | undefined
  #shownSince = 0
  #isLarge = false

  constructor(options: ApprovalDialogOptions) {
    this.#options = options
    this.#choices = choicesOf(options.ask)
    this.#state = beginAnswering(options.now())
  }

  get ask(): ApprovalAsk {
    return this.#options.ask
  }

  invalidate(): void {
    this.#drawn = undefined
  }

  /** No answer will come any more. */
  close(): void {
    this.#callOff()
  }

  handleInput(data: string): void {
    this.#callOff()
    const by = this.#scrollBy(data)
    if (by === 0) return this.#take(press(this.#state, data, this.#view()))
    this.#top += by
    this.#state = scrolled(this.#state, this.#options.now())
  }

  #take([state, effect]: Step): void {
    const { answer, later, typed } = this.#options
    // The chosen answer has to be drawn after this key, even if it was drawn before.
    if (state.chosen !== this.#state.chosen) this.#shown = undefined
    this.#state = state
    if (effect.type === "answer") return answer(effect.choice.approval)
    if (effect.type === "typed") for (const key of effect.keys) typed(key)
    const wait = settlesAfter(state)
    if (wait === undefined) return
    this.#callOff = later(wait, () => {
      const effect = settle(state, this.#view())
      if (this.#state === state && effect.type === "answer") answer(effect.choice.approval)
    })
  }

  #view(): View {
    const { now, size, text } = this.#options
    const { columns, rows } = size()
    return {
      now: now(),
      choices: this.#choices,
      isDrawn: this.#drawn?.columns === columns && this.#drawn.rows === rows,
      isComplete: this.#isLarge && this.#hasSeenAll,
      shown: this.#shown,
      shownSince: this.#shownSince,
      hasText: text() !== ""
    }
  }

  get #hasSeenAll(): boolean {
    return this.#seen >= this.#lines.length
  }

  #scrollBy(data: string): number {
    if (matchesKey(data, "down")) return 1
    if (matchesKey(data, "up")) return -1
    if (matchesKey(data, "pageDown")) return this.#room
    return matchesKey(data, "pageUp") ? -this.#room : 0
  }

  render(width: number): Array<string> {
    const { rows } = this.#options.size()
    this.#resized(width, rows)
    const isRoomy = rows >= roomyRows
    const available = isRoomy ? rows - 4 : rows
    const frame = this.#frame(width, isRoomy)
    const room = available - frame.above.length - frame.below.length
    // A confirmed command was read before; until then a line or two are too few to read it.
    const needed = Math.min(this.#state.chosen === undefined ? detailRows : 1, this.#lines.length)
    const isFloor = width >= smallestWindow.columns && rows >= smallestWindow.rows
    this.#isLarge = isFloor && room - (this.#lines.length > room ? 1 : 0) >= needed
    const shown = this.#isLarge ? this.#state.chosen : undefined
    if (this.#shown !== shown) this.#shownSince = this.#options.now()
    this.#shown = shown
    if (!this.#isLarge) return this.#tooSmall(width, rows)
    const isLong = this.#lines.length > room
    const hadSeenAll = this.#hasSeenAll
    const details = this.#details(isLong ? room - 1 : room)
    // The lines around them show that at once.
    if (this.#hasSeenAll !== hadSeenAll) return this.render(width)
    return [...frame.above, ...details, ...(isLong ? [this.#position(width)] : []), ...frame.below]
  }

  /** A resize resets the reading, and drops an answer that was about to be given. */
  #resized(columns: number, rows: number): void {
    const before = this.#drawn
    if (before?.columns === columns && before.rows === rows) return
    if (before?.columns !== columns || this.#lines.length === 0) {
      this.#lines = folded(strictText(this.#options.ask.detail), columns - 4)
      this.#seen = 0
    }
    const { letter } = this.#state
    this.#callOff()
    this.#drawn = { columns, rows }
    this.#state = beginAnswering(this.#options.now())
    if (letter !== undefined) this.#options.typed(letter)
  }

  #details(room: number): ReadonlyArray<string> {
    const { theme } = this.#options
    this.#room = Math.max(1, room)
    this.#top = Math.max(0, Math.min(this.#top, this.#lines.length - this.#room))
    const bottom = Math.min(this.#lines.length, this.#top + this.#room)
    // Only what followed what had been seen without a gap has been seen.
    if (this.#top <= this.#seen) this.#seen = Math.max(this.#seen, bottom)
    return this.#lines.slice(this.#top, bottom).map((line) => `  ${theme.accent("▏")} ${line}`)
  }

  /** No yes is taken here; all of it can be looked at all the same. */
  #tooSmall(width: number, rows: number): Array<string> {
    const { theme } = this.#options
    const [title = ""] = this.#title(width)
    const head = rows > 4 ? [fitted(title, width)] : []
    const what = this.#state.chosen === undefined ? "to allow" : "for this answer"
    const words = width < 36 ? "Too small: enlarge" : `Too small ${what}: enlarge it`
    const said = theme.warning(fitted(words, width))
    const keys = theme.dim(fitted("Esc: no · ↑↓ all", width))
    return [...head, ...this.#details(rows - head.length - 2), said, keys]
  }

  #frame(width: number, isRoomy: boolean): Frame {
    const { ask, text, theme } = this.#options
    const rule = isRoomy ? [theme.warning("─".repeat(width))] : []
    const unkept = ask.unkept === undefined ? [] : wrapped(strictText(ask.unkept), width).map(theme.warning)
    return {
      above: [...rule, ...this.#title(width)],
      below: [
        ...unkept,
        ...this.#covers(width, isRoomy),
        ...this.#keys(width),
        ...(text() === "" ? [] : [this.#typedText(width)]),
        ...rule
      ]
    }
  }

  #title(width: number): ReadonlyArray<string> {
    const { ask, theme, waiting } = this.#options
    const count = waiting() > 1 ? `1 of ${waiting()}` : ""
    const lines = wrapped(strictText(ask.title), width - count.length - 1).map((line) =>
      theme.warning(theme.bold(line))
    )
    return lines.map((line, index) => (index === 0 ? spread(line, theme.dim(count), width) : line))
  }

  #position(width: number): string {
    const all = this.#lines.length
    const bottom = Math.min(all, this.#top + this.#room)
    const hint = this.#hasSeenAll ? "" : "; ↓ to see all of it before you agree"
    return this.#options.theme.dim(fitted(`  lines ${this.#top + 1} to ${bottom} of ${all}${hint}`, width))
  }

  /** The coverage of the chosen answer, or how to choose one. */
  #covers(width: number, isRoomy: boolean): ReadonlyArray<string> {
    const { theme } = this.#options
    const choice = this.#state.chosen === undefined ? undefined : this.#choices[this.#state.chosen]
    if (choice !== undefined) {
      const isOpen = this.#hasSeenAll || choice.approval === "no"
      const enter = isOpen ? "Enter confirms" : "Not before all was seen (↓)"
      return wrapped(`${enter}: ${strictText(choice.covers)}`, width)
    }
    if (!isRoomy || this.#options.text() !== "") return []
    return wrapped("y and n answer; s, r, a and ← → choose, and Enter confirms what is shown", width).map(
      theme.dim
    )
  }

  #keys(width: number): ReadonlyArray<string> {
    const { text, theme } = this.#options
    const lettersCount = text() === ""
    const isOpen = this.#hasSeenAll
    const lines: Array<string> = []
    let used = width
    for (const [at, { approval, letter, words }] of this.#choices.entries()) {
      const whole = `${lettersCount ? `${letter} ` : ""}${safeLine(words)}`
      const cut = visibleWidth(whole) <= width - 2 ? whole : fitted(whole, width - 2)
      const isChosen = at === this.#state.chosen
      const shown = isChosen
        ? theme.bold(theme.accent(`[${cut}]`))
        : isOpen || approval === "no"
          ? cut
          : theme.dim(cut)
      const wide = visibleWidth(cut) + (isChosen ? 2 : 0)
      const isNext = used + 2 + wide <= width
      lines.push(isNext ? `${lines.pop() ?? ""}  ${shown}` : shown)
      used = isNext ? used + 2 + wide : wide
    }
    return lines
  }

  #typedText(width: number): string {
    const { text, theme } = this.#options
    const all = safeLine(text())
    const hint = this.#state.isFocused ? "kept in the editor: " : "Tab answers; in the editor: "
    const room = Math.max(4, width - hint.length)
    return theme.dim(fitted(`${hint}${all.length > room ? `…${all.slice(1 - room)}` : all}`, width))
  }
}
