import { type Component, Editor, setCapabilities, type Terminal, TuiMainScreen } from "@earendil-works/pi-tui"
import { roomyRows } from "./ApprovalDialog.ts"
import { checked, fitted, narrowed } from "./Lines.ts"
import { drawActivity, drawStatus } from "./StatusLines.ts"
import type { TerminalState } from "./TerminalState.ts"
import type { Theme } from "./Theme.ts"
import { TranscriptView } from "./TranscriptView.ts"

/** How often the lines that change with time are drawn. */
const tickMillis = 200

interface ScreenOptions {
  readonly terminal: Terminal
  readonly theme: Theme
  readonly state: () => TerminalState
  readonly workspace: string
  readonly heading: string
  readonly logDirectory: string
  readonly now: () => number
}

/**
 * The conversation, and below it the part that takes the keys: the editor, or a question in its place. It is drawn into
 * the terminal's main screen, so the terminal's own memory, search and copying work on it.
 */
export class Screen {
  readonly editor: Editor
  /** in place of the activity, until the next key */
  hint = ""
  readonly #options: ScreenOptions
  readonly #tui: TuiMainScreen
  #asking: Component | undefined
  #ticking: NodeJS.Timeout | undefined
  #running = false
  #leaving = false

  constructor(options: ScreenOptions) {
    this.#options = options
    // Links are shown with their target, pictures not at all: nothing that a model writes becomes a sequence.
    setCapabilities({ images: null, trueColor: false, hyperlinks: false })
    // On a failure the library writes the screen's contents to a file: not where others can read it.
    this.#tui = new TuiMainScreen(options.terminal, false, options.logDirectory)
    this.editor = new Editor(this.#tui, options.theme.editor)
    this.#tui.addChild(this.#part((width) => [options.theme.dim(fitted(options.heading, width))]))
    this.#tui.addChild(new TranscriptView(options.theme, options.state))
    this.#tui.addChild(this.#part((width) => this.#foot(width)))
  }

  /** `key`: whether it was for the screen as a whole. Keys come as the terminal sends them. */
  start(key: (data: string) => boolean): void {
    this.#tui.addInputListener((data) => {
      this.hint = ""
      return key(data) ? { consume: true } : undefined
    })
    this.#tui.setFocus(this.editor)
    this.resume()
  }

  /** Shows a component in place of the editor, until `close`. The editor keeps its text. */
  ask(component: Component): void {
    this.#asking = component
    this.#tui.setFocus(component)
    this.redraw()
  }

  close(): void {
    this.#asking = undefined
    this.#tui.setFocus(this.editor)
    this.redraw()
  }

  get asking(): Component | undefined {
    return this.#asking
  }

  redraw(): void {
    if (!this.#running) return
    this.#tui.requestRender()
    const { active, link } = this.#options.state()
    const ticks = active !== undefined || link.state === "waiting"
    if (ticks) this.#ticking ??= setInterval(() => this.redraw(), tickMillis)
    else this.#rest()
  }

  /** Everything anew, for terminals that show something else by now. */
  repaint(): void {
    this.#tui.invalidate()
    this.#tui.requestRender(true)
  }

  resume(): void {
    this.#running = true
    this.#tui.start()
    this.redraw()
  }

  /** The terminal as it was, the conversation still on it. */
  stop(): void {
    if (!this.#running) return
    this.#leaving = true
    this.#tui.renderNow()
    this.restore()
  }

  /** The terminal as it was, drawing nothing: also for when drawing is what failed. May be called at any time. */
  restore(): void {
    if (!this.#running) return
    this.#running = false
    this.#rest()
    this.#tui.stop()
  }

  #rest(): void {
    clearInterval(this.#ticking)
    this.#ticking = undefined
  }

  #foot(width: number): ReadonlyArray<string> {
    // The library writes over the first column of the line that its cursor is on when it stops.
    if (this.#leaving) return [""]
    const { now, state, theme, workspace } = this.#options
    const shown = state()
    const activity = this.hint === "" ? drawActivity(shown, theme, width, now()) : [theme.warning(this.hint)]
    const asking = this.#asking?.render(width).map((line) => checked(line, width))
    // A small window is for the question alone.
    if (asking !== undefined && this.#options.terminal.rows < roomyRows) return asking
    return [
      "",
      ...activity.map((line) => checked(line, width)),
      ...(asking ?? this.editor.render(width).map((line) => narrowed(line, width))),
      checked(drawStatus(shown, workspace, theme, width, now()), width)
    ]
  }

  #part(render: (width: number) => ReadonlyArray<string>): Component {
    return { render: (width) => [...render(width)], invalidate: () => this.#asking?.invalidate() }
  }
}
