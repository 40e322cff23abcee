import type { ToolName } from "#schemas/agents/ToolCall.ts"

/** A call of a tool in a plan. */
export interface PlannedCall {
  readonly name: string
  /** JSON, or the plan's text in its place */
  readonly argumentsText: string
}

/** An intended fault of a message. `times`: so often, then it goes well. */
export type Fault =
  | { readonly kind: "fail"; readonly status: number; readonly times: number }
  | { readonly kind: "break"; readonly times: number }
  | { readonly kind: "length" }

/** One line of a plan. */
export type PlanStep =
  | { readonly kind: "call"; readonly call: PlannedCall; readonly joins: boolean }
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "think"; readonly text: string }
  | { readonly kind: "words"; readonly count: number }
  | { readonly kind: "show" }
  | { readonly kind: "wait"; readonly millis: number }
  | { readonly kind: "fault"; readonly fault: Fault }
  | { readonly kind: "stop on error" }

/** The syntax for newcomers, and for the README. */
export const syntax = `read src/add.mjs                  ls [src]     find **/*.mjs [src]     grep "a pattern" [src]
edit src/add.mjs: "a - b" => "a + b", "x" => "y"
write notes.txt: "texts in quotes are JSON: \\n is a new line"
run node --test                   run (5 s) sleep 60    with a timeout
commit "Fix add"                  git add and git commit
call grep {"pattern":"a","literal":true}     any tool, its arguments as they stand
& read package.json               a call in the same message as the call above it
say Done.      words 200      show (the last result)      think Let me see.
wait 500                          milliseconds before every piece from here on
fail 503 [2 times]      break [2 times]      length     the message that the lines below make fails,
                                  breaks off, or is cut in its middle; without a number, always
stop on error                     anywhere: the first call that fails ends the plan`

/** A text in quotes, as in JSON. */
const quoted = String.raw`"(?:[^"\\]|\\.)*"`
/** A text in quotes, or a word without any. */
const word = String.raw`(?:${quoted}|[^\s"]+)`

const pattern = (source: string): RegExp => new RegExp(`^${source}$`, "su")

/** Throws `SyntaxError` where the quotes hold no JSON. */
const unquoted = (text: string): string => (text.startsWith('"') ? String(JSON.parse(text)) : text)

const toolOf = (name: ToolName, params: object): PlanStep => ({
  kind: "call",
  call: { name, argumentsText: JSON.stringify(params) },
  joins: false
})

const pathOf = (path: string | undefined): object => (path === undefined ? {} : { path: unquoted(path) })

const editOf = (path: string, text: string): PlanStep => {
  const pairs = text.matchAll(new RegExp(`(${quoted})\\s*=>\\s*(${quoted})`, "gsu"))
  const edits = Array.from(pairs, ([, oldText = "", newText = ""]) => ({
    oldText: unquoted(oldText),
    newText: unquoted(newText)
  }))
  return toolOf("edit", { path: unquoted(path), edits })
}

/** Any text as a word of the shell. */
const shellWord = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const timesOf = (times: string | undefined): number => (times === undefined ? Infinity : Number(times))

type Groups = ReadonlyArray<string | undefined>

/** The first that fits is it. No command is called `the`: a `run the …` is a wish in plain English. */
const forms: ReadonlyArray<readonly [RegExp, (groups: Groups) => PlanStep]> = [
  [pattern(`read (${word})`), ([path]) => toolOf("read", pathOf(path))],
  [pattern(`ls(?: (${word}))?`), ([path]) => toolOf("ls", pathOf(path))],
  [
    pattern(`(find|grep) (${word})(?: (${word}))?`),
    ([name, what = "", path]) =>
      toolOf(name === "find" ? "find" : "grep", { pattern: unquoted(what), ...pathOf(path) })
  ],
  [
    pattern(`write (${quoted}|[^\\s"]+?): ?(${quoted})`),
    ([path, content = ""]) => toolOf("write", { ...pathOf(path), content: unquoted(content) })
  ],
  [
    pattern(
      `edit (${quoted}|[^\\s"]+?): ?(${quoted}\\s*=>\\s*${quoted}(?:\\s*,\\s*${quoted}\\s*=>\\s*${quoted})*)`
    ),
    ([path = "", edits = ""]) => editOf(path, edits)
  ],
  [
    pattern(String.raw`run (?:\((\d{1,5}) s\) )?((?!the\b)\S.*)`),
    ([timeout, command]) =>
      toolOf("bash", { command, ...(timeout === undefined ? {} : { timeout: Number(timeout) }) })
  ],
  [
    pattern(`commit (${quoted})`),
    ([message = ""]) =>
      toolOf("bash", { command: `git add -A && git commit -m ${shellWord(unquoted(message))}` })
  ],
  [
    pattern(String.raw`call (\w+) ?(.*)`),
    ([name = "", argumentsText = ""]) => ({ kind: "call", call: { name, argumentsText }, joins: false })
  ],
  [pattern("say (.+)"), ([text = ""]) => ({ kind: "say", text })],
  [pattern("think (.+)"), ([text = ""]) => ({ kind: "think", text })],
  [pattern(String.raw`words (\d{1,6})`), ([count]) => ({ kind: "words", count: Number(count) })],
  [pattern("show"), () => ({ kind: "show" })],
  [pattern(String.raw`wait (\d{1,6})`), ([millis]) => ({ kind: "wait", millis: Number(millis) })],
  [
    pattern(String.raw`fail ([45]\d\d)(?: (\d{1,3}) times?)?`),
    ([status, times]) => ({
      kind: "fault",
      fault: { kind: "fail", status: Number(status), times: timesOf(times) }
    })
  ],
  [
    pattern(String.raw`break(?: (\d{1,3}) times?)?`),
    ([times]) => ({ kind: "fault", fault: { kind: "break", times: timesOf(times) } })
  ],
  [pattern("length"), () => ({ kind: "fault", fault: { kind: "length" } })],
  [pattern("stop on error"), () => ({ kind: "stop on error" })]
]

const stepOf = (line: string): PlanStep | undefined => {
  for (const [form, make] of forms) {
    const match = form.exec(line)
    if (match !== null) return make(match.slice(1))
  }
  return undefined
}

/** Undefined for a line that is no step of a plan. */
export const readStep = (line: string): PlanStep | undefined => {
  try {
    if (!line.startsWith("& ")) return stepOf(line)
    const step = stepOf(line.slice(2).trim())
    return step?.kind === "call" ? { ...step, joins: true } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
