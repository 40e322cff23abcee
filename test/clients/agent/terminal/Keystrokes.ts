import * as fc from "fast-check"
import type { Approval, ApprovalAsk } from "#src/clients/agent/boundary/Approval.ts"
import { ApprovalDialog } from "#src/clients/agent/terminal/ApprovalDialog.ts"
import { makeTheme } from "#src/clients/agent/terminal/Theme.ts"
import { keys } from "./TerminalRig.ts"
import { VirtualClock } from "./VirtualClock.ts"

/** An action at the keyboard or of the window, each so many milliseconds after the one before. */
export type Action = { readonly after: number } & (
  | { readonly type: "keys"; readonly keys: ReadonlyArray<string>; readonly isPaste: boolean }
  | { readonly type: "resize"; readonly columns: number; readonly rows: number }
  | { readonly type: "ask"; readonly lines: number }
  /** the machine is busy: drawing is so many milliseconds late from here on */
  | { readonly type: "busy"; readonly millis: number }
)

const pauses = fc.oneof(
  fc.integer({ min: 0, max: 59 }),
  { arbitrary: fc.integer({ min: 60, max: 499 }), weight: 3 },
  fc.integer({ min: 500, max: 1_500 }),
  fc.integer({ min: 2_000, max: 6_000 })
)
const { down, enter, escape, left, pageDown, right, tab } = keys
const single = fc.constantFrom(
  ..."ysarnYSARNyyssaarrxe ",
  enter,
  enter,
  enter,
  right,
  right,
  left,
  tab,
  down,
  pageDown,
  pageDown,
  "\u007f",
  escape
)
const words = "yes no stop and always rather say yesterday any really sorry not".split(" ")
const word = fc
  .tuple(fc.constantFrom(...words), fc.boolean())
  .map(([text, isSent]) => [...text, ...(isSent ? [enter] : [])])

const keysAction = fc.record({
  type: fc.constant("keys" as const),
  after: pauses,
  keys: single.map((key) => [key]),
  isPaste: fc.constant(false)
})
const pasteAction = fc.record({
  type: fc.constant("keys" as const),
  after: pauses,
  keys: fc.oneof(
    word,
    fc.array(single, { minLength: 2, maxLength: 6 }),
    word.map((letters) => [`\u001b[200~${letters.join("")}\u001b[201~`]),
    fc.constantFrom(["\u001b[200~y\u001b[201~"], ["\u001b[200~\r\u001b[201~"])
  ),
  isPaste: fc.constant(true)
})
const resizeAction = fc.record({
  type: fc.constant("resize" as const),
  after: pauses,
  columns: fc.constantFrom(20, 30, 40, 80, 120),
  rows: fc.constantFrom(5, 9, 12, 24, 40)
})
const askAction = fc.record({
  type: fc.constant("ask" as const),
  after: pauses,
  lines: fc.constantFrom(1, 1, 2, 8, 30)
})

const busyAction = fc.record({
  type: fc.constant("busy" as const),
  after: fc.constant(0),
  millis: fc.constantFrom(0, 400, 3_000)
})

const typedWord: fc.Arbitrary<ReadonlyArray<Action>> = fc
  .tuple(word, fc.array(pauses, { minLength: 12, maxLength: 12 }))
  .map(([letters, gaps]) =>
    letters.map((key, at) => ({ type: "keys", after: gaps[at] ?? 100, keys: [key], isPaste: false }))
  )

/** A choice that is read, and then confirmed: or as the pauses change it. */
const choice: fc.Arbitrary<ReadonlyArray<Action>> = fc
  .tuple(
    fc.constantFrom(["s"], ["a"], ["r"], ["r", right], [right], [right, right], [left], [tab, tab], ["y"]),
    fc.integer({ min: 200, max: 2_500 }),
    fc.integer({ min: 40, max: 2_000 })
  )
  .map(([chosen, before, after]) =>
    [...chosen, enter].map((key, at) => ({
      type: "keys",
      after: at === 0 ? before : after,
      keys: [key],
      isPaste: false
    }))
  )

export const streams: fc.Arbitrary<ReadonlyArray<Action>> = fc
  .array(
    fc.oneof(
      { arbitrary: keysAction.map((one): ReadonlyArray<Action> => [one]), weight: 6 },
      { arbitrary: typedWord, weight: 2 },
      { arbitrary: choice, weight: 4 },
      { arbitrary: pasteAction.map((one): ReadonlyArray<Action> => [one]), weight: 1 },
      { arbitrary: resizeAction.map((one): ReadonlyArray<Action> => [one]), weight: 1 },
      { arbitrary: busyAction.map((one): ReadonlyArray<Action> => [one]), weight: 1 },
      { arbitrary: askAction.map((one): ReadonlyArray<Action> => [one]), weight: 4 }
    ),
    { minLength: 3, maxLength: 10 }
  )
  .map((parts) => parts.flat())

export interface Pressed {
  readonly at: number
  readonly key: string
  readonly isPaste: boolean
  /** the editor's text before */
  readonly text: string
}

export interface Drawn {
  readonly at: number
  readonly columns: number
  readonly rows: number
  readonly lines: ReadonlyArray<string>
}

/** A question, and all that happened while it was asked. */
export interface Asked {
  readonly lines: ReadonlyArray<string>
  readonly frames: Array<Drawn>
  readonly pressed: Array<Pressed>
  approval: Approval | undefined
  answeredAt: number
}

const theme = makeTheme(false)
const frameMillis = 16

const askOf = (lines: ReadonlyArray<string>): ApprovalAsk => ({
  callId: "c",
  kinds: ["network"],
  title: "Run a command with the network",
  detail: lines.join("\n"),
  scope: "Exactly this command here",
  rules: [{ name: "npm test *", covers: "npm test and more", examples: [] }]
})

/** The real dialog, with an editor, a window and a clock that the stream has in its hands. */
export class Keyboard {
  readonly asked: Array<Asked> = []
  /** all that came to the editor */
  received = ""
  /** keys that were pressed while there was no question on the screen */
  before = ""
  #text = ""
  readonly #clock = new VirtualClock(0)
  #size = { columns: 80, rows: 24 }
  #dialog: ApprovalDialog | undefined
  #isDrawing = false
  #busyMillis = 0

  run(actions: ReadonlyArray<Action>): void {
    for (const action of actions) {
      this.#clock.goTo(this.#clock.now + action.after)
      if (action.type === "ask") this.#ask(action.lines)
      else if (action.type === "busy") this.#busyMillis = action.millis
      else if (action.type === "resize") this.#size = { columns: action.columns, rows: action.rows }
      else for (const key of action.keys) this.#press(key, action.isPaste)
      this.#drawSoon()
    }
    this.#clock.goTo(this.#clock.now + 10_000)
  }

  #press(key: string, isPaste: boolean): void {
    const dialog = this.#dialog
    const asked = this.asked.at(-1)
    if (asked?.frames.length === 0 || dialog === undefined) this.before += printed(key)
    if (dialog === undefined || asked === undefined) return this.#type(key)
    asked.pressed.push({ at: this.#clock.now, key, isPaste, text: this.#text })
    dialog.handleInput(key)
  }

  #type(key: string): void {
    this.received += printed(key)
    if (key === enter) this.#text = ""
    else if (key === "\u007f") this.#text = this.#text.slice(0, -1)
    else this.#text += printed(key)
  }

  #ask(count: number): void {
    if (this.#dialog !== undefined) return
    const lines = Array.from({ length: count }, (_none, at) => `step-${at}-of-${count};`)
    const asked: Asked = { lines, frames: [], pressed: [], approval: undefined, answeredAt: 0 }
    this.asked.push(asked)
    this.#dialog = new ApprovalDialog({
      ask: askOf(lines),
      waiting: () => 1,
      theme,
      size: () => this.#size,
      now: () => this.#clock.now,
      later: this.#clock.later,
      text: () => this.#text,
      typed: (key) => this.#type(key),
      answer: (approval) => {
        asked.approval = approval
        asked.answeredAt = this.#clock.now
        this.#dialog?.close()
        this.#dialog = undefined
      }
    })
  }

  #drawSoon(): void {
    if (this.#isDrawing || this.#dialog === undefined) return
    this.#isDrawing = true
    this.#clock.later(frameMillis + this.#busyMillis, () => {
      this.#isDrawing = false
      const lines = this.#dialog?.render(this.#size.columns)
      if (lines !== undefined) this.asked.at(-1)?.frames.push({ at: this.#clock.now, lines, ...this.#size })
    })
  }
}

const pasteStart = "\u001b[200~"
const pasteEnd = "\u001b[201~"

/** The text that a key writes into an editor. */
const printed = (key: string): string => {
  if (key.startsWith(pasteStart))
    return key.slice(pasteStart.length, -pasteEnd.length).replaceAll(/[^ -~]/g, "")
  return /^[ -~]$/.test(key) ? key : ""
}
