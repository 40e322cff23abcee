import type { AgentSession, TranscriptEntry, TranscriptToolCall } from "#schemas/agents/AgentSession.ts"
import type { View } from "../view/View.ts"

/** The list of the sessions. */
export const agentsView: View = { room: "agents", params: {} }

/** A session's state, in a word, and the look of its light. */
export const stateOf = ({
  end_reason,
  live,
  status
}: Pick<AgentSession, "end_reason" | "live" | "status">): {
  readonly words: string
  readonly light: "up" | "pulsing" | "degraded" | ""
} => {
  switch (status) {
    case "starting":
      return { words: "starting", light: "degraded" }
    case "running":
      return { words: "at work", light: "pulsing" }
    case "idle":
      return { words: "waiting for its person", light: "up" }
    case "detached":
      return live
        ? { words: "its client is away", light: "degraded" }
        : { words: "its client is away; it can be resumed", light: "" }
    case "ended":
      return { words: end_reason === null ? "ended" : endWords[end_reason], light: "" }
  }
}

const endWords: Readonly<Record<NonNullable<AgentSession["end_reason"]>, string>> = {
  client_bye: "ended by its client",
  ended_by_owner: "ended by its owner",
  expired: "expired",
  revoked: "ended: the key was revoked",
  error: "ended by a fault"
}

/** A tool's arguments in a line: its path, pattern or command. */
export const gistOf = (args: unknown): string => {
  if (typeof args === "string") return oneLine(args)
  if (typeof args !== "object" || args === null) return ""
  const fields = args as Readonly<Record<string, unknown>>
  const { command, path, pattern } = fields
  const parts = [command, pattern, path].filter((part) => typeof part === "string")
  if (parts.length === 0) return Object.keys(fields).length === 0 ? "" : oneLine(JSON.stringify(args))
  return oneLine(typeof command === "string" ? command : parts.join(" in "))
}

const oneLine = (text: string): string => {
  const line = text.trim().replaceAll(/\s+/g, " ")
  return line.length > 200 ? `${line.slice(0, 199)}…` : line
}

/** The outcome of a call, in words. */
export const outcomeOf = ({ denied, error, ok, result }: TranscriptToolCall): string => {
  if (ok === null) return "under way"
  if (denied) return "denied"
  if (!ok) return error === undefined ? "failed" : error.code.replaceAll("_", " ")
  const code = field(result, "exitCode")
  const signal = field(result, "signal")
  if (typeof signal === "string") return `ended by ${signal}`
  return typeof code === "number" && code !== 0 ? `exit code ${code}` : "done"
}

/** Whether a call succeeded; a command with another exit code than 0 did not. */
export const isFine = (call: TranscriptToolCall): boolean => outcomeOf(call) === "done"

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

export interface Shown {
  readonly kind: "text" | "diff"
  readonly text: string
}

/** A result as a person reads it: the change, the output, the text, the names; else the JSON of it. */
export const shownResult = ({ error, result }: TranscriptToolCall): Shown | undefined => {
  if (error !== undefined) return { kind: "text", text: error.message }
  if (result === undefined) return undefined
  const diff = field(result, "diff")
  if (typeof diff === "string") return { kind: "diff", text: diff }
  for (const name of ["output", "content"]) {
    const text = field(result, name)
    if (typeof text === "string") return { kind: "text", text }
  }
  for (const name of ["entries", "matches"]) {
    const list = field(result, name)
    if (Array.isArray(list)) return { kind: "text", text: list.join("\n") }
  }
  return { kind: "text", text: JSON.stringify(result, null, 2) ?? "" }
}

/** Arguments as a person reads them: a command or a text as it is, the rest as JSON. */
export const shownArguments = (args: unknown): string => {
  if (typeof args === "string") return args
  const command = field(args, "command")
  return typeof command === "string" && Object.keys(args ?? {}).length === 1
    ? command
    : (JSON.stringify(args, null, 2) ?? "")
}

/** The kind of a line of a unified diff. */
export const lineKind = (line: string): "added" | "removed" | "place" | "same" => {
  if (/^(\+\+\+|---|@@|\\)/.test(line)) return "place"
  if (line.startsWith("+")) return "added"
  return line.startsWith("-") ? "removed" : "same"
}

type Done = Extract<TranscriptEntry, { readonly type: "done" }>

export const doneWords: Readonly<Record<Done["status"], string>> = {
  completed: "Done",
  aborted: "Aborted",
  error: "Failed",
  budget: "Stopped: the budget is used up",
  max_turns: "Stopped: too many turns"
}
