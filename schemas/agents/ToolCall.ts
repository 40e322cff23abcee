import { Schema } from "effect"
import { integer } from "../core/Text.ts"
import { agentLimits } from "./AgentLimits.ts"

/**
 * The tools of an agent session: their names for models, the methods that clients implement, and the shapes of
 * parameters and results. Source: contract/agents#tools.
 */

const Path = Schema.String.check(
  Schema.isBetweenLength(1, 4_096, { expected: "a path of 1 to 4096 characters" })
).annotate({
  description: "A path in the workspace, absolute or relative to its root"
})
const count = (maximum: number) => Schema.optionalKey(integer(1, maximum))
const anyCount = count(1_000_000_000)

export const ReadParams = Schema.Struct({
  path: Path,
  offset: anyCount.annotate({ description: "First line, from 1" }),
  limit: anyCount.annotate({ description: "Lines at most" })
})
export const WriteParams = Schema.Struct({ path: Path, content: Schema.String })
export const Edit = Schema.Struct({
  oldText: Schema.String.annotate({ description: "Text that occurs exactly once in the file as it is" }),
  newText: Schema.String
})
export const EditParams = Schema.Struct({
  path: Path,
  edits: Schema.Array(Edit)
    .check(Schema.isBetweenLength(1, 200, { expected: "1 to 200 edits" }))
    .annotate({ description: "Each is matched against the file as it is, and they do not overlap" })
})
export const ListParams = Schema.Struct({ path: Schema.optionalKey(Path), limit: anyCount })
export const GlobParams = Schema.Struct({
  pattern: Path.annotate({ description: "A glob such as src/**/*.ts" }),
  path: Schema.optionalKey(Path),
  limit: anyCount
})
export const GrepParams = Schema.Struct({
  pattern: Path.annotate({ description: "A regular expression, or text where literal is true" }),
  path: Schema.optionalKey(Path),
  glob: Schema.optionalKey(Path).annotate({ description: "Only files that match, such as *.ts" }),
  ignoreCase: Schema.optionalKey(Schema.Boolean),
  literal: Schema.optionalKey(Schema.Boolean),
  context: Schema.optionalKey(integer(0, 20)).annotate({ description: "Lines shown around each match" }),
  limit: anyCount
})
export const ExecParams = Schema.Struct({
  command: Schema.String.check(
    Schema.isBetweenLength(1, 65_536, { expected: "a command of 1 to 65536 characters" })
  ).annotate({ description: "Run by the shell in the workspace's root" }),
  timeout: count(agentLimits.execSecondsMax).annotate({
    description: `Seconds; ${agentLimits.execSeconds} when absent`
  })
})

export const ReadResult = Schema.Struct({
  content: Schema.String,
  totalLines: Schema.Int,
  truncated: Schema.Boolean,
  nextOffset: Schema.optionalKey(Schema.Int)
})
export const WriteResult = Schema.Struct({ bytes: Schema.Int, created: Schema.Boolean })
export const EditResult = Schema.Struct({ diff: Schema.String, replacements: Schema.Int })
/** directories end in `/` */
export const EntriesResult = Schema.Struct({
  entries: Schema.Array(Schema.String),
  truncated: Schema.Boolean
})
/** `matches` as grep prints them: `path:line: text`, lines of context as `path-line- text` */
export const GrepResult = Schema.Struct({ matches: Schema.Array(Schema.String), truncated: Schema.Boolean })
export const ExecResult = Schema.Struct({
  exitCode: Schema.NullOr(Schema.Int).annotate({ description: "null where a signal ended it" }),
  signal: Schema.optionalKey(Schema.String),
  output: Schema.String.annotate({ description: "The end of stdout and stderr as they came" }),
  truncated: Schema.Boolean,
  fullOutputPath: Schema.optionalKey(Schema.String)
})

/**
 * `replay`: whether a call whose outcome is unknown may be repeated. The order is that of `GET /agent`.
 */
export const tools = [
  {
    name: "read",
    method: "fs.read",
    replay: "safe",
    params: ReadParams,
    result: ReadResult,
    description: `Read a text file. At most ${agentLimits.textLines} lines or ${agentLimits.textBytes / 1024} KiB; go on with offset.`
  },
  {
    name: "write",
    method: "fs.write",
    replay: "never",
    params: WriteParams,
    result: WriteResult,
    description: "Write a file whole. Its directories are made."
  },
  {
    name: "edit",
    method: "fs.edit",
    replay: "never",
    params: EditParams,
    result: EditResult,
    description: "Change a file by exact replacements. Every oldText has to occur exactly once in the file."
  },
  {
    name: "ls",
    method: "fs.list",
    replay: "safe",
    params: ListParams,
    result: EntriesResult,
    description: "List a directory. Directories end in a slash."
  },
  {
    name: "find",
    method: "fs.glob",
    replay: "safe",
    params: GlobParams,
    result: EntriesResult,
    description: "Find files by a glob. What .gitignore names is left out."
  },
  {
    name: "grep",
    method: "fs.grep",
    replay: "safe",
    params: GrepParams,
    result: GrepResult,
    description: "Search the contents of files. What .gitignore names is left out."
  },
  {
    name: "bash",
    method: "proc.exec",
    replay: "never",
    params: ExecParams,
    result: ExecResult,
    description: `Run a command in the workspace. The end of its output comes back, at most ${agentLimits.textLines} lines or ${agentLimits.textBytes / 1024} KiB.`
  }
] as const

export type Tool = (typeof tools)[number]
export type ToolName = Tool["name"]
export type ToolMethod = Tool["method"]
export const toolNames: ReadonlyArray<ToolName> = tools.map(({ name }) => name)
export const toolMethods: ReadonlyArray<ToolMethod> = tools.map(({ method }) => method)

export const toolErrorCodes = [
  "denied",
  "outside_workspace",
  "not_found",
  "not_unique",
  "too_large",
  "binary",
  "timeout",
  "cancelled",
  "interrupted",
  "invalid_params",
  "exec_failed"
] as const
export type ToolErrorCode = (typeof toolErrorCodes)[number]

export const ToolError = Schema.Struct({
  code: Schema.Literals(toolErrorCodes),
  message: Schema.String
})
export type ToolError = typeof ToolError.Type
