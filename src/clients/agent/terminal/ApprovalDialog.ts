import { type Component, matchesKey } from "@earendil-works/pi-tui"
import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"
import { fitted, folded, spread, wrapped } from "./Lines.ts"
import { strictText } from "./SafeText.ts"
import type { Theme } from "./Theme.ts"

const answers: ReadonlyArray<readonly [key: "y" | "s" | "a" | "n", approval: Approval, words: string]> = [
  ["y", "once", "once"],
  ["s", "session", "this session"],
  ["a", "always", "always here"],
  ["n", "no", "no"]
]

/** Keys that come so soon after one another are typing, not an answer. Milliseconds. */
export const typingPauseMillis = 500

export interface ApprovalDialogOptions {
  readonly ask: ApprovalAsk
  /** how many wait, this one included */
  readonly waiting: () => number
  readonly theme: Theme
  /** lines of the terminal */
  readonly rows: () => number
  readonly now: () => number
  /** keys of somebody who was typing when the question came up */
  readonly typed: (data: string) => void
  readonly answer: (approval: Approval) => void
}

/**
 * Asks for the user's word. All of what would run has to have been on the screen before a yes counts, and keys that
 * were meant for the editor do not answer it.
 */
export class ApprovalDialog implements Component {
  readonly #options: ApprovalDialogOptions
  #quietSince: number
  #top = 0
  #seen = 0
  #width = 0
  #lines: ReadonlyArray<string> = []

  constructor(options: ApprovalDialogOptions) {
    this.#options = options
    this.#quietSince = options.now()
  }

  get ask(): ApprovalAsk {
    return this.#options.ask
  }

  invalidate(): void {
    this.#width = 0
  }

  handleInput(data: string): void {
    const { answer, now, typed } = this.#options
    if (matchesKey(data, "escape")) return answer("no")
    const scrolled = this.#scrolled(data)
    if (scrolled !== 0) {
      this.#top += scrolled
      return
    }
    if (now() - this.#quietSince < typingPauseMillis) {
      this.#quietSince = now()
      return typed(data)
    }
    const chosen = answers.find(([key]) => matchesKey(data, key) || data === key.toUpperCase())
    if (chosen === undefined) return
    const [, approval] = chosen
    if (approval === "no" || this.#seen >= this.#lines.length) answer(approval)
  }

  #scrolled(data: string): number {
    if (matchesKey(data, "down")) return 1
    if (matchesKey(data, "up")) return -1
    if (matchesKey(data, "pageDown")) return this.#room()
    return matchesKey(data, "pageUp") ? -this.#room() : 0
  }

  /** Lines for what would run: what the screen has beside the frame, and a few lines of the conversation. */
  #room(): number {
    return Math.max(3, this.#options.rows() - 14)
  }

  render(width: number): Array<string> {
    const { ask, theme } = this.#options
    const inner = width - 4
    if (this.#width !== width) {
      this.#width = width
      this.#lines = folded(strictText(ask.detail), inner)
      this.#seen = 0
    }
    const room = this.#room()
    this.#top = Math.max(0, Math.min(this.#top, this.#lines.length - room))
    const bottom = Math.min(this.#lines.length, this.#top + room)
    // Only what followed what had been seen without a gap has been seen.
    if (this.#top <= this.#seen) this.#seen = Math.max(this.#seen, bottom)
    const rule = theme.warning("─".repeat(width))
    return [
      rule,
      ...this.#title(width),
      ...this.#lines.slice(this.#top, bottom).map((line) => `  ${theme.accent("▏")} ${line}`),
      ...(this.#lines.length > room ? [this.#position(bottom, width)] : []),
      ...wrapped(`“This session” and “always here” cover: ${strictText(ask.scope)}`, width).map(theme.dim),
      this.#keys(width),
      rule
    ]
  }

  #title(width: number): ReadonlyArray<string> {
    const { ask, theme, waiting } = this.#options
    const count = waiting() > 1 ? `1 of ${waiting()}` : ""
    const lines = wrapped(strictText(ask.title), width - count.length - 1).map((line) =>
      theme.warning(theme.bold(line))
    )
    return lines.map((line, index) => (index === 0 ? spread(line, theme.dim(count), width) : line))
  }

  #position(bottom: number, width: number): string {
    const all = this.#lines.length
    const hint = this.#seen < all ? "; ↓ to see all of it before you agree" : ""
    return this.#options.theme.dim(fitted(`  lines ${this.#top + 1} to ${bottom} of ${all}${hint}`, width))
  }

  #keys(width: number): string {
    const { theme } = this.#options
    const agreed = this.#seen >= this.#lines.length
    const keys = answers.map(([key, approval, words]) =>
      agreed || approval === "no" ? `${theme.bold(theme.accent(key))} ${words}` : theme.dim(`${key} ${words}`)
    )
    return fitted(`${keys.join("   ")}${width < 70 ? "" : theme.dim("   (Esc: no)")}`, width)
  }
}
