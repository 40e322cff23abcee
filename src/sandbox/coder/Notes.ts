import { type Plan, planOf } from "./Plan.ts"

/** State that has to outlive a compaction: the model answers the request for a summary with it, and reads it again. */
export interface Notes {
  /** undefined: none is under way */
  readonly plan: Plan | undefined
  /** messages of the plan that are behind it */
  readonly turnsDone: number
  /** in the whole conversation */
  readonly callsMade: number
  /** the person's words beside the plan that have no answer yet */
  readonly heard: ReadonlyArray<string>
}

const firstLine = /^Notes of sandbox\/coder: (\d+) messages of the plan done, (\d+) calls made\.$/u
const lastLine = "End of the notes."

export const notesText = ({ callsMade, heard, plan, turnsDone }: Notes): string =>
  [
    `Notes of sandbox/coder: ${turnsDone} messages of the plan done, ${callsMade} calls made.`,
    ...(plan?.lines ?? []).map((line) => `> ${line}`),
    ...heard.map((text) => `heard: ${JSON.stringify(text)}`),
    lastLine
  ].join("\n")

/** Empty for a line that was cut off. */
const heardIn = (line: string): ReadonlyArray<string> => {
  const [, text] = /^heard: ("(?:[^"\\]|\\["\\bfnrt]|\\u[0-9a-f]{4})*")$/u.exec(line) ?? []
  return text === undefined ? [] : [String(JSON.parse(text))]
}

/** The newest notes in a text; undefined if there are none. */
export const readNotes = (text: string): Notes | undefined => {
  const lines = text.split("\n").map((line) => line.trim())
  const begin = lines.findLastIndex((line) => firstLine.test(line))
  if (begin < 0) return undefined
  const [, turnsDone, callsMade] = firstLine.exec(lines[begin] ?? "") ?? []
  const end = lines.indexOf(lastLine, begin)
  const noted = lines.slice(begin + 1, end < 0 ? undefined : end)
  const planned = noted.filter((line) => line.startsWith("> ")).map((line) => line.slice(2))
  const plan = planned.length === 0 ? undefined : planOf(planned)
  return {
    plan: plan === undefined || "faultyLine" in plan ? undefined : plan,
    turnsDone: Number(turnsDone),
    callsMade: Number(callsMade),
    heard: noted.flatMap(heardIn)
  }
}
