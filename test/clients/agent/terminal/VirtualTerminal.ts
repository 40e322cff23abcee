import type { Terminal } from "@earendil-works/pi-tui"
import xterm from "@xterm/headless"

/** A terminal that exists only in memory: its output, and its visible screen. */
export class VirtualTerminal implements Terminal {
  readonly kittyProtocolActive = false
  written = ""
  running = false
  #screen: xterm.Terminal
  #input: (data: string) => void = () => undefined
  #resize: () => void = () => undefined

  constructor(columns = 80, rows = 24) {
    this.#screen = new xterm.Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true })
  }

  get columns(): number {
    return this.#screen.cols
  }
  get rows(): number {
    return this.#screen.rows
  }

  start(input: (data: string) => void, resize: () => void): void {
    this.running = true
    this.#input = input
    this.#resize = resize
  }
  stop(): void {
    this.running = false
  }
  drainInput(): Promise<void> {
    return Promise.resolve()
  }
  write(data: string): void {
    this.written += data
    this.#screen.write(data)
  }
  moveBy(lines: number): void {
    if (lines !== 0) this.write(`\u001b[${Math.abs(lines)}${lines > 0 ? "B" : "A"}`)
  }
  hideCursor(): void {
    this.write("\u001b[?25l")
  }
  showCursor(): void {
    this.write("\u001b[?25h")
  }
  clearLine(): void {
    this.write("\u001b[K")
  }
  clearFromCursor(): void {
    this.write("\u001b[J")
  }
  clearScreen(): void {
    this.write("\u001b[2J\u001b[H")
  }
  setTitle(title: string): void {
    this.write(`\u001b]0;${title}\u0007`)
  }
  setProgress(): void {
    this.write("\u001b]9;4;3\u0007")
  }

  /** Types: one key, or a text key by key. */
  type(...keys: ReadonlyArray<string>): void {
    for (const key of keys) this.#input(key)
  }

  resize(columns: number, rows: number): void {
    this.#screen.resize(columns, rows)
    this.#resize()
  }

  /** Everything that can be scrolled to and seen, without styles, when what was asked to be drawn is drawn. */
  async text(): Promise<string> {
    const lines = await this.#settled()
    return lines.join("\n").trimEnd()
  }

  /** The part of the screen that is visible without scrolling. */
  async visible(): Promise<ReadonlyArray<string>> {
    const lines = await this.#settled()
    return lines.slice(-this.rows)
  }

  /** Lines that the terminal itself had to break, since they were wider than it. */
  wrapped(): number {
    const { active } = this.#screen.buffer
    return Array.from(
      { length: active.length },
      (_none, row) => active.getLine(row)?.isWrapped === true
    ).filter(Boolean).length
  }

  async #settled(): Promise<ReadonlyArray<string>> {
    let before: string
    do {
      before = this.written
      // The library draws at most every 16 ms, from timers.
      await new Promise((resolve) => setTimeout(resolve, 20))
    } while (this.written !== before)
    await new Promise<void>((resolve) => this.#screen.write("", resolve))
    const { active } = this.#screen.buffer
    return Array.from({ length: active.length }, (_none, row) =>
      (active.getLine(row)?.translateToString(true) ?? "").trimEnd()
    )
  }
}
