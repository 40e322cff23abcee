import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import { type Tool, tools } from "#schemas/agents/ToolCall.ts"
import type { ToolCallPart } from "#streams/agents/Conversation.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { type CallAsk, type CallOutcome, failed } from "./OpenCalls.ts"

/** The time limit of a client's call that is not a command. */
const fileCallMillis = 60_000

const decodersOf = (tool: Tool) => ({
  tool,
  params: Schema.decodeUnknownResult(tool.params),
  result: Schema.decodeUnknownResult(tool.result)
})

const decoders = new Map<string, ReturnType<typeof decodersOf>>(
  tools.map((tool) => [tool.name, decodersOf(tool)])
)

/** The client's call for a model's call, or the outcome of an invalid one. */
export const askOf = (
  { args, callId, tool: name }: ToolCallPart,
  promptId: string
): CallAsk | CallOutcome => {
  const known = decoders.get(name)
  if (known === undefined) return failed("invalid_params", `There is no tool ${name.slice(0, 100)}`)
  if (!isJsonRecord(args)) return failed("invalid_params", "The arguments are not a JSON object")
  const params = known.params(name === "edit" ? editsOf(args) : args)
  if (Result.isFailure(params))
    return failed("invalid_params", `The arguments do not fit: ${String(params.failure).slice(0, 500)}`)
  const { method, replay } = known.tool
  return { callId, promptId, method, params: params.success, replay, timeoutMillis: timeoutOf(name, args) }
}

export const isAsk = (ask: CallAsk | CallOutcome): ask is CallAsk => "method" in ask

/** A result of the wrong shape would reach the model as it is. */
export const checked = (tool: string, outcome: CallOutcome): CallOutcome => {
  if (!outcome.ok) return outcome
  const result = decoders.get(tool)?.result(outcome.result)
  return result !== undefined && Result.isSuccess(result)
    ? { ...outcome, result: result.success }
    : {
        ...failed("exec_failed", "The client's result does not have the form of this tool's"),
        durationMs: outcome.durationMs
      }
}

const timeoutOf = (name: string, args: JsonRecord): number => {
  if (name !== "bash") return fileCallMillis
  const { timeout } = args
  return (typeof timeout === "number" ? timeout : agentLimits.execSeconds) * 1_000
}

/**
 * Models write edits in other forms too: as JSON text, as one object, or as the fields of a single edit. All are
 * unambiguous.
 */
const editsOf = (args: JsonRecord): JsonRecord => {
  const { newText, oldText, ...rest } = args
  if (args["edits"] === undefined && oldText !== undefined) return { ...rest, edits: [{ oldText, newText }] }
  const edits = typeof args["edits"] === "string" ? parsed(args["edits"]) : args["edits"]
  return { ...args, edits: isJsonRecord(edits) ? [edits] : edits }
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // The decoder says what is wrong with it.
    return text
  }
}
