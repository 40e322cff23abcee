import { type Fault, type PlannedCall, readStep, type PlanStep } from "./PlanStep.ts"

/** One message of the model: it thinks, speaks and makes its calls. */
export interface Turn {
  readonly thoughts: ReadonlyArray<string>
  readonly said: ReadonlyArray<Said>
  readonly calls: ReadonlyArray<PlannedCall>
  /** before every piece; undefined: the model's own pace */
  readonly pieceMillis: number | undefined
  readonly fault: Fault | undefined
}

export type Said =
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "words"; readonly count: number }
  | { readonly kind: "show" }

export interface Plan {
  /** as they were written */
  readonly lines: ReadonlyArray<string>
  /** the last one makes no call, all others do */
  readonly turns: ReadonlyArray<Turn>
  readonly stopsOnError: boolean
}

export const noTurn: Turn = { thoughts: [], said: [], calls: [], pieceMillis: undefined, fault: undefined }

/** The kind of a message: a plan, one with a line that is no step, or anything else. */
export type Reading =
  | { readonly kind: "plan"; readonly plan: Plan }
  | { readonly kind: "faulty"; readonly line: string }
  | { readonly kind: "words" }

const withStep = (turn: Turn, step: PlanStep): Turn => {
  switch (step.kind) {
    case "think":
      return { ...turn, thoughts: [...turn.thoughts, step.text] }
    case "wait":
      return { ...turn, pieceMillis: step.millis }
    case "fault":
      return { ...turn, fault: step.fault }
    case "call":
      return { ...turn, calls: [...turn.calls, step.call] }
    case "stop on error":
      return turn
    default:
      return { ...turn, said: [...turn.said, step] }
  }
}

/** A message ends with its calls; the lines before them belong to it. */
const turnsOf = (steps: ReadonlyArray<PlanStep>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  let turn = noTurn
  for (const step of steps) {
    if (turn.calls.length > 0 && !(step.kind === "call" && step.joins)) {
      turns.push(turn)
      turn = { ...noTurn, pieceMillis: turn.pieceMillis }
    }
    turn = withStep(turn, step)
  }
  if (turn.calls.length === 0) return [...turns, turn]
  return [...turns, turn, { ...noTurn, pieceMillis: turn.pieceMillis }]
}

export const planOf = (lines: ReadonlyArray<string>): Plan | { readonly faultyLine: string } => {
  const steps: Array<PlanStep> = []
  for (const line of lines) {
    const step = readStep(line)
    if (step === undefined) return { faultyLine: line }
    steps.push(step)
  }
  return { lines, turns: turnsOf(steps), stopsOnError: steps.some(({ kind }) => kind === "stop on error") }
}

/**
 * A plan has a step on every line, or after a line `plan:` on every line below it; blank lines and ``` are skipped. A
 * message that begins like a plan and does not go on like one is faulty, not words: the answer says so.
 */
export const readPlan = (text: string): Reading => {
  const written = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("```"))
  const header = written.findIndex((line) => line.toLowerCase() === "plan:")
  const lines = written.slice(header + 1)
  const [first] = lines
  if (first === undefined || (header < 0 && readStep(first) === undefined)) return { kind: "words" }
  const plan = planOf(lines)
  return "faultyLine" in plan ? { kind: "faulty", line: plan.faultyLine } : { kind: "plan", plan }
}
