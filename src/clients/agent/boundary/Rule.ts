import { Schema } from "effect"
import { readShell, shells } from "../exec/ShellCommands.ts"
import { approvalKinds, kindsOfNeed, type ApprovalKind } from "./Approval.ts"

const Kinds = Schema.Array(Schema.String)

/** A permission beyond one exact call. `kinds`: it grants these needs, and no others. */
export const Rule = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("command"),
    /** the first words of the command; any may follow */
    words: Schema.Array(Schema.String).check(Schema.isMinLength(2)),
    kinds: Kinds
  }),
  Schema.Struct({
    type: Schema.Literal("write"),
    /** relative to the workspace, without a slash at its end; all that is below it */
    directory: Schema.NonEmptyString,
    kinds: Kinds
  })
])
export type Rule = typeof Rule.Type

/** The subject of a question, as far as rules can be made of it. */
export type Subject =
  | { readonly type: "command"; readonly command: string }
  /** the file's path relative to the workspace */
  | { readonly type: "write"; readonly path: string }

export interface Need {
  readonly subject: Subject
  readonly kinds: ReadonlyArray<ApprovalKind>
}

/** Longer commands are looked at one by one. */
const commandCharacters = 2_000

/**
 * Letters that mean nothing to a shell, wherever they stand, and quotes. Everything else (operators, redirections,
 * expansions, patterns, escapes, line ends, comments) leaves a doubt, and a doubt is asked about.
 */
const harmless = /^[\p{L}\p{N} _.,:=@%+/'"-]+$/u
const assignment = /^[A-Za-z_]\w*\+?=/

/** These run what they are given: their first words say nothing about what happens. */
const runners = new Set(
  "env sudo doas xargs nice ionice nohup time timeout setsid stdbuf command builtin exec source find ssh watch parallel git-shell script flock unshare chroot entr".split(
    " "
  )
)
/** Programs whose second word says what they do; of others a rule would say too little. */
const tools = new Set(
  "git hg svn jj npm pnpm yarn bun npx bunx deno cargo go rustup pip pip3 uv uvx poetry pipenv pdm hatch tox nox make just task rake bundle gem composer mix dotnet mvn mvnw gradle gradlew sbt lein swift cmake ctest ninja meson bazel gh glab helm terraform tofu brew vitest jest mocha playwright cypress eslint prettier biome oxlint ruff mypy pytest phpunit rspec turbo nx lerna vite next astro".split(
    " "
  )
)
/** Behind these words of a program comes the name of what it runs. */
const running = new Set("run run-script exec x dlx tool compose".split(" "))

const programName = /^[A-Za-z][\w.+-]*$/
const plainWord = /^[A-Za-z][\w:.-]*$/

/** The words of a command that is one simple command without anything that a shell would act on; else undefined. */
export const plainWords = (command: string): ReadonlyArray<string> | undefined => {
  if (command.length > commandCharacters || !harmless.test(command)) return undefined
  // A quote that is not closed.
  if (/['"]/.test(command.replaceAll(/'[^']*'|"[^"]*"/g, ""))) return undefined
  const { commands, isPlain } = readShell(command)
  const [first] = commands
  if (!isPlain || commands.length !== 1 || first === undefined || first.assignments.length > 0)
    return undefined
  const { words } = first
  const [program = ""] = words
  if (!programName.test(program) || assignment.test(program)) return undefined
  return shells.has(program) || runners.has(program) ? undefined : words
}

const segments = (path: string): ReadonlyArray<string> => path.split("/")
const isPlainPath = (path: string): boolean =>
  segments(path).every((segment) => segment !== "" && segment !== "." && segment !== "..")

/** Whether a rule answers a question. In doubt it does not. */
export const isCovered = (rule: Rule, { kinds, subject }: Need): boolean => {
  const isGranted =
    kinds.length > 0 && kinds.every((kind) => kindsOfNeed[kind].byRule && rule.kinds.includes(kind))
  if (!isGranted) return false
  if (rule.type === "write") {
    const isBelow = subject.type === "write" && isPlainPath(subject.path) && isPlainPath(rule.directory)
    return isBelow && subject.path.startsWith(`${rule.directory}/`)
  }
  if (subject.type !== "command" || rule.words.length < 2) return false
  const words = plainWords(subject.command)
  return words !== undefined && rule.words.every((word, index) => words[index] === word)
}

const commandRules = (command: string): ReadonlyArray<ReadonlyArray<string>> => {
  const [program = "", second = "", third = ""] = plainWords(command) ?? []
  if (!tools.has(program) || !plainWord.test(second)) return []
  const short = running.has(second) ? [] : [[program, second]]
  return plainWord.test(third) ? [...short, [program, second, third]] : short
}

const directoryOf = (path: string): string => segments(path).slice(0, -1).join("/")

/** The rules that can be offered with a question, the widest first; at most two. */
export const rulesFor = ({ kinds, subject }: Need): ReadonlyArray<Rule> => {
  if (kinds.length === 0 || !kinds.every((kind) => kindsOfNeed[kind].byRule)) return []
  const rules: ReadonlyArray<Rule> =
    subject.type === "command"
      ? commandRules(subject.command).map((words) => ({ type: "command", words, kinds }))
      : [{ type: "write", directory: directoryOf(subject.path), kinds }]
  return rules.filter((rule) => isCovered(rule, { kinds, subject }))
}

export const ruleName = (rule: Rule): string =>
  rule.type === "command" ? `${rule.words.join(" ")} *` : `${rule.directory}/`

const grantedBy = ({ kinds }: Rule): string => {
  const known = approvalKinds.filter((kind) => kinds.includes(kind))
  return known.map((kind) => kindsOfNeed[kind].says).join("; ")
}

/** The coverage of a rule, for its confirmation by the user. */
export const ruleCovers = (rule: Rule, root: string): string =>
  rule.type === "command"
    ? `“${rule.words.join(" ")}” with any words behind it, as a command of its own, in ${root}, ${grantedBy(rule)}`
    : `Any write below ${rule.directory}/ in ${root}, also one ${grantedBy(rule)}`
