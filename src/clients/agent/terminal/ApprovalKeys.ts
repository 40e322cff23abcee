import { matchesKey } from "@earendil-works/pi-tui"
import type { Choice } from "./ApprovalChoices.ts"

/** Milliseconds. */
export const approvalPauses = {
  /** keys that come so soon after the question was drawn, or after one another, are typing and no answer */
  quiet: 500,
  /** a letter that nothing follows for so long is an answer; before, it may be the first of a word */
  settle: 500,
  /** a letter that follows another so soon goes on with its word */
  word: 1_000,
  /** keys that follow one another so closely come from a paste */
  burst: 60,
  /** the least time from drawing, and from the key before, to the confirmation of an answer for longer than once */
  confirm: 300
} as const

/** The progress of the answer. Times are those of the clock that `View.now` reads. */
export interface Answering {
  /** the place of the choice that Enter would confirm */
  readonly chosen: number | undefined
  /** the letter that chose it, as it was typed: it may turn out to be the first of a word */
  readonly letter: string | undefined
  /** Enter was pressed on it, and counts unless something follows at once, as it does in a paste */
  readonly isEntered: boolean
  /** Tab has turned the keys from the editor's text to the question */
  readonly isFocused: boolean
  /** when the question was drawn in this size, or a key went to the editor */
  readonly quietSince: number
  readonly keyAt: number
}

/** The screen as the user saw it when the key came. */
export interface View {
  readonly now: number
  readonly choices: ReadonlyArray<Choice>
  /** the question as it is, in the size of the window */
  readonly isDrawn: boolean
  /** all of what would run was on the screen, and its question with it */
  readonly isComplete: boolean
  /** the choice that the last drawing showed with what it covers */
  readonly shown: number | undefined
  /** since when it is */
  readonly shownSince: number
  /** the editor holds something that was not sent */
  readonly hasText: boolean
}

export type Effect =
  | { readonly type: "nothing" }
  /** for the editor */
  | { readonly type: "typed"; readonly keys: ReadonlyArray<string> }
  | { readonly type: "answer"; readonly choice: Choice }

export type Step = readonly [Answering, Effect]

export const beginAnswering = (now: number): Answering => ({
  chosen: undefined,
  letter: undefined,
  isEntered: false,
  isFocused: false,
  quietSince: now,
  keyAt: now
})

const nothing: Effect = { type: "nothing" }

const isPaste = (data: string): boolean =>
  data.startsWith("\u001b[200~") || (!data.startsWith("\u001b") && Array.from(data).length > 1)

/** The key, and a letter before it that was no answer after all, go to the editor. */
const typed = ({ letter }: Answering, data: string, now: number): Step => [
  beginAnswering(now),
  { type: "typed", keys: letter === undefined ? [data] : [letter, data] }
]

const chosenBy = (data: string, choices: ReadonlyArray<Choice>): number | undefined => {
  const at = choices.findIndex(({ letter }) => matchesKey(data, letter) || data === letter.toUpperCase())
  return at < 0 ? undefined : at
}

const moved = (data: string, { chosen }: Answering, count: number): number | undefined => {
  if (matchesKey(data, "right") || matchesKey(data, "tab")) return ((chosen ?? -1) + 1) % count
  if (matchesKey(data, "left") || matchesKey(data, "shift+tab")) return ((chosen ?? 0) + count - 1) % count
  return undefined
}

/** Whether a choice may be given now: a yes only where it was on the screen with all that it is about. */
const mayAnswer = (choice: Choice, at: number, { isComplete, isDrawn, shown }: View): boolean =>
  choice.approval === "no" || (isDrawn && isComplete && shown === at)

const confirmed = (state: Answering, data: string, view: View): Step => {
  const { chosen, letter } = state
  const pause = view.now - state.keyAt
  const looked = view.now - view.shownSince
  const choice = chosen === undefined ? undefined : view.choices[chosen]
  if (letter !== undefined && pause < approvalPauses.burst) return typed(state, data, view.now)
  const isTooSoon =
    choice?.isWide === true ? Math.min(pause, looked) < approvalPauses.confirm : pause < approvalPauses.burst
  if (choice === undefined || chosen === undefined || isTooSoon || !mayAnswer(choice, chosen, view))
    return [{ ...state, isEntered: false, keyAt: view.now }, nothing]
  return [{ ...state, letter: undefined, isEntered: true, keyAt: view.now }, nothing]
}

/** The effect of one key. Keys that were meant for the editor go there, and none of them answers. */
export const press = (state: Answering, data: string, view: View): Step => {
  const { choices, hasText, isDrawn, now } = view
  const no = choices.findIndex(({ approval }) => approval === "no")
  const refusal = choices[no]
  if (matchesKey(data, "escape") && refusal !== undefined) return [state, { type: "answer", choice: refusal }]
  if (isPaste(data) || !isDrawn || now - state.quietSince < approvalPauses.quiet)
    return typed(state, data, now)
  if (hasText && !state.isFocused) {
    if (!matchesKey(data, "tab")) return typed(state, data, now)
    return [{ ...state, isFocused: true, chosen: no, keyAt: now }, nothing]
  }
  if (matchesKey(data, "enter")) return confirmed(state, data, view)
  const next = moved(data, state, choices.length)
  if (next !== undefined)
    return [{ ...state, chosen: next, letter: undefined, isEntered: false, keyAt: now }, nothing]
  const chosen = hasText ? undefined : chosenBy(data, choices)
  const goesOn = now - state.keyAt < (state.letter === undefined ? approvalPauses.burst : approvalPauses.word)
  if (chosen === undefined || goesOn) return typed(state, data, now)
  return [{ ...state, chosen, letter: data, isEntered: false, keyAt: now }, nothing]
}

/** How long to wait for a key that may follow; undefined: no answer is about to be given. */
export const settlesAfter = ({ isEntered, letter }: Answering): number | undefined =>
  isEntered ? approvalPauses.burst : letter === undefined ? undefined : approvalPauses.settle

/** Nothing followed: the answer that was confirmed, or that the letter gives where a single key may give it. */
export const settle = (state: Answering, view: View): Effect => {
  const { chosen, isEntered, keyAt } = state
  const wait = settlesAfter(state)
  const choice = chosen === undefined ? undefined : view.choices[chosen]
  if (choice === undefined || chosen === undefined || wait === undefined) return nothing
  const isByLetter = !isEntered && !choice.isWide && !view.hasText
  if (view.now - keyAt < wait || !(isEntered || isByLetter)) return nothing
  return mayAnswer(choice, chosen, view) ? { type: "answer", choice } : nothing
}

/** A key that only moves what is looked at: a letter before it was meant for the question, and waits for Enter. */
export const scrolled = (state: Answering, now: number): Answering => ({
  ...state,
  letter: undefined,
  isEntered: false,
  keyAt: now
})
