import { forEachChild, parse, type Command, type SyntaxNode, type Word, type WordPart } from "unbash"

/** One simple command of a shell's text. */
export interface ShellCommand {
  /**
   * The program and its arguments with quotes off. Parts that only the shell knows are left as they are written (`$X`,
   * `$(…)`), but for variables that the text itself sets.
   */
  readonly words: ReadonlyArray<string>
  /** before the program, or of export, declare and the like */
  readonly assignments: ReadonlyArray<readonly [name: string, value: string]>
  /** a here-document or here-string: a shell runs it, other programs read it */
  readonly input: string | undefined
}

/** The reading of a command's text. It decides only the questions to the user; the sandbox sets the limits. */
interface ShellReading {
  readonly commands: ReadonlyArray<ShellCommand>
  /** only words, `&&` and `;`: no redirection, pipe, substitution, variable, assignment, job or error */
  readonly isPlain: boolean
  /** something goes on while the rest runs, a server perhaps */
  readonly hasJobs: boolean
}

/** These run a text that they are given. */
export const shells: ReadonlySet<string> = new Set("sh bash dash zsh ksh ash mksh fish eval".split(" "))

/** Substitutions within each other, and all parts of the tree: deeper ones are not read. */
const maxSubstitutions = 32
const maxDepth = 1_000

const plainTypes: ReadonlySet<string> = new Set(
  "Script Statement AndOr Command Word Literal SingleQuoted DoubleQuoted Glob".split(" ")
)

type Variables = Map<string, string>

/** The name in `$X` or `${X}`, without anything done to the value. */
const variableOf = (part: WordPart): string | undefined => {
  if (part.type === "SimpleExpansion") return part.text.slice(1)
  const isWhole = part.type === "ParameterExpansion" && part.operation === undefined
  return isWhole && part.prefix === undefined && part.index === undefined ? part.parameter : undefined
}

const textOf = (part: WordPart, variables: Variables): string => {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return part.value
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.map((one) => textOf(one, variables)).join("")
    default: {
      const name = variableOf(part)
      return (name === undefined ? undefined : variables.get(name)) ?? part.text
    }
  }
}

const valueOf = ({ parts, value }: Word, variables: Variables): string =>
  parts === undefined ? value : parts.map((part) => textOf(part, variables)).join("")

/** A variable outside of quotes makes as many words as its value has. */
const wordsOf = (word: Word, variables: Variables): ReadonlyArray<string> => {
  const value = valueOf(word, variables)
  const isSplit = word.parts?.some((part) => variables.has(variableOf(part) ?? ""))
  return isSplit === true ? value.split(/\s+/).filter((one) => one !== "") : [value]
}

class Reader {
  readonly commands: Array<ShellCommand> = []
  hasJobs = false
  isPlain = true
  readonly #variables: Variables = new Map()

  visit(node: SyntaxNode, depth: number, substitutions: number): void {
    if (!plainTypes.has(node.type)) this.isPlain = false
    if (node.type === "Statement" && node.background === true) this.hasJobs = true
    if (node.type === "AndOr" && node.operators.includes("||")) this.isPlain = false
    if (node.type === "Script" && (node.errors?.length ?? 0) > 0) this.isPlain = false
    if (node.type === "Command") this.#add(node)
    const inner = substitutions + (node.type === "Script" ? 1 : 0)
    if (depth >= maxDepth || inner > maxSubstitutions) return
    forEachChild(node, (child) => this.visit(child, depth + 1, inner))
  }

  #add(command: Command): void {
    const { name, prefix, redirects, args } = command
    if (prefix.length > 0 || redirects.length > 0) this.isPlain = false
    const assigned = [...prefix, ...args].filter((one) => one.type === "Assignment")
    const assignments = assigned.map(
      ({ name: to, value, append }) =>
        [
          to,
          (append === true ? (this.#variables.get(to) ?? "") : "") +
            (value.type === "Word" ? valueOf(value, this.#variables) : "")
        ] as const
    )
    const words = [name, ...args].flatMap((word) =>
      word?.type === "Word" ? wordsOf(word, this.#variables) : word === undefined ? [] : [word.text]
    )
    // Before a program an assignment is the program's; alone, or with export, it is the shell's.
    if (name === undefined || args.some(({ type }) => type === "Assignment"))
      for (const [to, value] of assignments) this.#variables.set(to, value)
    const here = redirects.findLast(({ type }) => type === "HereDoc" || type === "HereString")
    const input =
      here?.type === "HereDoc"
        ? here.body.text
        : here?.type === "HereString" && here.target !== undefined
          ? valueOf(here.target, this.#variables)
          : undefined
    this.commands.push({ words, assignments, input })
  }
}

/** Reads a text as bash does, as far as it is complete. Any text is read, in time that grows with its length. */
export const readShell = (text: string): ShellReading => {
  const reader = new Reader()
  reader.visit(parse(text), 0, 0)
  const { commands, hasJobs, isPlain } = reader
  return { commands, hasJobs, isPlain: isPlain && !/[$`]/.test(text) }
}
