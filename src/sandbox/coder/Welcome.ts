import { noTurn, type Turn } from "./Plan.ts"
import { syntax } from "./PlanStep.ts"
import type { Outcome, Work } from "./Progress.ts"

/** The answer for newcomers who do not know that this model needs a plan. */

const who =
  "I am sandbox/coder, the scripted model of Signalbox's built-in sandbox: a program, no language model. " +
  "I cannot make sense of plain words, but I carry out plans exactly."

const howTo = `A plan is a message with one step on each line. Where other words come first, a line \`plan:\` begins it.

\`\`\`
${syntax}
\`\`\`

Try this one:

\`\`\`
write hello.txt: "Hello from the sandbox\\n"
run cat hello.txt
show
\`\`\`

A real model answers here as soon as the server has an upstream (UPSTREAM_URL).`

const quotedMax = 200
const listedMax = 12
const linesMax = 5

const quote = (text: string): string => {
  const short = text.trim()
  return short.length > quotedMax ? `“${short.slice(0, quotedMax)} …”` : `“${short}”`
}

/** Files worth a look, in this order. */
const telling = [/^readme(\.\w+)?$/i, /^package\.json$/]

/** The names in a list; text in brackets is about the list. */
const listed = ({ hasFailed, text }: Outcome): ReadonlyArray<string> =>
  hasFailed
    ? []
    : text
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "" && !/^[([].*[)\]]$/u.test(line))

const worthReading = (list: Outcome | undefined): string | undefined => {
  const names = list === undefined ? [] : listed(list)
  return telling.flatMap((name) => names.find((entry) => name.test(entry)) ?? [])[0]
}

const listText = (list: Outcome): string => {
  if (list.hasFailed) return `I asked for a list of the workspace and got: ${list.text.slice(0, quotedMax)}`
  const names = listed(list)
  const more = names.length > listedMax ? ` and ${names.length - listedMax} more` : ""
  return names.length === 0
    ? "The workspace is empty."
    : `The workspace has ${names.slice(0, listedMax).join(", ")}${more}.`
}

const readText = (path: string, { hasFailed, text }: Outcome): string => {
  if (hasFailed) return `${path} could not be read: ${text.slice(0, quotedMax)}`
  const lines = text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(0, linesMax)
  return `${path} begins:\n\n${lines.map((line) => `> ${line.slice(0, quotedMax)}`).join("\n")}`
}

const saying = (...paragraphs: ReadonlyArray<string>): Turn => ({
  ...noTurn,
  said: [{ kind: "say", text: paragraphs.join("\n\n") }]
})

const calling = (text: string, name: string, params: object): Turn => ({
  ...saying(text),
  calls: [{ name, argumentsText: JSON.stringify(params) }]
})

const heardText = (text: string): ReadonlyArray<string> => (text === "" ? [] : [`You said ${quote(text)}.`])

export const welcoming = (text: string): Turn => saying(...heardText(text), who, howTo)

type Words = Extract<Work, { readonly kind: "words" }>

/** Words in place of a plan: the model looks around, and explains itself. Later words get the explanation alone. */
export const lookingAround = (
  { isFirst, text }: Words,
  turnsDone: number,
  outcomes: ReadonlyArray<Outcome>
): Turn => {
  if (!isFirst) return welcoming(text)
  if (turnsDone === 0) return calling("I look around first.", "ls", {})
  const [list, file] = outcomes
  const path = worthReading(list)
  if (path !== undefined && turnsDone === 1) return calling(`${path} may say more.`, "read", { path })
  const seen = [
    ...(list === undefined ? [] : [listText(list)]),
    ...(path === undefined || file === undefined ? [] : [readText(path, file)])
  ]
  return saying(...heardText(text), who, ...seen, howTo)
}

export const faultyText = (line: string): string =>
  [`I took this for a plan, but one of its lines is no step: ${quote(line)}. I did nothing.`, howTo].join(
    "\n\n"
  )
