import { Schema } from "effect"
import { SessionId } from "../core/Ids.ts"
import { ThinkingLevel } from "./ClientFrame.ts"
import { ToolError, toolMethods, toolNames } from "./ToolCall.ts"

/**
 * Frames of the server, one JSON object each. Clients ignore unknown fields, kinds and types. Source:
 * contract/agents#server-frames.
 */

const Seq = Schema.Int.annotate({
  description:
    "Counts the session's frames from 1; holes only where frames were collapsed or lost (replay_gap)"
})
const Tokens = Schema.Struct({
  promptTokens: Schema.Int,
  completionTokens: Schema.Int,
  totalTokens: Schema.Int
})
export type Tokens = typeof Tokens.Type

export const AgentModel = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  context_length: Schema.Int
}).annotate({ identifier: "AgentModel" })
export type AgentModel = typeof AgentModel.Type

export const AgentBilling = Schema.Struct({
  mode: Schema.Literals(["subscription", "credits", "free"]).annotate({
    description: "What the next call would be drawn from"
  }),
  plan: Schema.NullOr(Schema.String),
  covers_direct_api: Schema.Boolean
}).annotate({ identifier: "AgentBilling" })
export type AgentBilling = typeof AgentBilling.Type

export const Ready = Schema.Struct({
  type: Schema.Literal("ready"),
  sessionId: SessionId,
  resumed: Schema.Boolean,
  seq: Seq.annotate({ description: "The last number given so far" }),
  model: AgentModel,
  thinkingLevel: ThinkingLevel,
  tools: Schema.Array(Schema.Literals(toolNames)),
  billing: AgentBilling,
  activePrompt: Schema.optionalKey(Schema.String),
  limits: Schema.Struct({
    frameBytes: Schema.Int,
    promptBytes: Schema.Int,
    streamChunkBytes: Schema.Int,
    streamBytes: Schema.Int,
    queue: Schema.Int,
    pingMillis: Schema.Int,
    deadMillis: Schema.Int
  })
}).annotate({ description: "The client is attached to its session. What it has missed comes after it." })
export type Ready = typeof Ready.Type

const event = <const K extends string, F extends Schema.Struct.Fields>(
  kind: K,
  description: string,
  fields: F
) =>
  Schema.Struct({
    type: Schema.Literal("event"),
    seq: Seq,
    promptId: Schema.String.annotate({ description: "Empty outside of a prompt" }),
    kind: Schema.Literal(kind),
    ...fields
  }).annotate({ description })

const delta = {
  messageId: Schema.String,
  contentIndex: Schema.Int.annotate({ description: "Which part of the message's content" }),
  delta: Schema.String
}

/** A part of a model's message. */
export const ContentPart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("thinking"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("tool_call"),
    callId: Schema.String,
    tool: Schema.String,
    args: Schema.Unknown.annotate({ description: "Text where the model wrote no JSON" })
  })
])
export type ContentPart = typeof ContentPart.Type

export const stopReasons = ["stop", "tool_calls", "length", "aborted", "error"] as const

export const events = {
  turn_start: event("turn_start", "A turn begins: one call of a model, and the tools that it asks for.", {
    turn: Schema.Int.annotate({ description: "From 1 in each prompt" }),
    text: Schema.optionalKey(Schema.String).annotate({
      description: "What the prompt asked, with turn 1: whoever attaches later has not seen it"
    })
  }),
  text_delta: event("text_delta", "A piece of the text of an answer.", delta),
  thinking_delta: event("thinking_delta", "A piece of what the model thinks.", delta),
  tool_start: event("tool_start", "A call was handed to the client.", {
    callId: Schema.String,
    tool: Schema.String,
    args: Schema.Unknown
  }),
  tool_update: event("tool_update", "Output of a command that runs, as tool.stream brought it.", {
    callId: Schema.String,
    stream: Schema.Literals(["stdout", "stderr"]),
    data: Schema.String
  }),
  tool_end: event("tool_end", "A call has its outcome, and it is stored.", {
    callId: Schema.String,
    ok: Schema.Boolean,
    denied: Schema.Boolean,
    durationMs: Schema.Finite,
    error: Schema.optionalKey(ToolError)
  }),
  message_end: event(
    "message_end",
    "An answer is whole, and stored. Its content is what counts, whatever the deltas said.",
    {
      messageId: Schema.String,
      model: Schema.String,
      content: Schema.Array(ContentPart),
      stopReason: Schema.Literals(stopReasons),
      usage: Tokens,
      costUsd: Schema.Finite
    }
  ),
  turn_end: event("turn_end", "All calls of the turn have their outcomes.", { turn: Schema.Int }),
  queue_update: event("queue_update", "What waits to be said to the model, after a change.", {
    queue: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        text: Schema.String,
        mode: Schema.Literals(["steer", "follow_up"])
      })
    )
  }),
  steer_applied: event("steer_applied", "What waited is a part of the conversation now.", {
    id: Schema.String,
    text: Schema.String
  }),
  model_fallback: event("model_fallback", "Another model answers in place of the one that was asked.", {
    from: Schema.String,
    to: Schema.String
  }),
  retry: event("retry", "A model call failed and is made again.", {
    attempt: Schema.Int.annotate({ description: "The one to come, from 2" }),
    delayMs: Schema.Int,
    message: Schema.String
  }),
  compaction_start: event(
    "compaction_start",
    "The conversation is about to be summed up, because it grew too long or somebody asked for it.",
    { tokens: Schema.Int }
  ),
  compaction_end: event("compaction_end", "It was summed up, or could not be.", {
    ok: Schema.Boolean,
    tokens: Schema.Int,
    summary: Schema.optionalKey(Schema.String),
    message: Schema.optionalKey(Schema.String)
  }),
  budget_warning: event("budget_warning", "Most of the budget of the session is spent.", {
    spentUsd: Schema.Finite,
    budgetUsd: Schema.Finite
  }),
  replay_gap: event(
    "replay_gap",
    "Frames with these numbers, bounds included, cannot be sent again. Nothing of the transcript is lost: GET /api/v1/agent/sessions/:id has it.",
    { from: Schema.Int, to: Schema.Int }
  )
} as const

export const eventKinds = Object.keys(events) as ReadonlyArray<keyof typeof events>
export type EventKind = keyof typeof events
/** An event of one kind, before it has its number and prompt. */
export type EventOf<K extends EventKind> = Omit<(typeof events)[K]["Type"], "type" | "seq" | "promptId">

export const ToolRequest = Schema.Struct({
  type: Schema.Literal("tool.request"),
  seq: Seq,
  callId: Schema.String,
  promptId: Schema.String,
  method: Schema.Literals(toolMethods),
  params: Schema.Unknown.annotate({ description: "By method" }),
  timeoutMs: Schema.Int,
  replay: Schema.Literals(["safe", "never"]),
  attempt: Schema.Int.annotate({ description: "From 1; the same call asked for again counts on" })
}).annotate({
  description:
    "Asks the client to make a call. It is answered with tool.result. Calls of one message come together and may run side by side."
})
export type ToolRequest = typeof ToolRequest.Type

export const cancelReasons = ["abort", "timeout", "superseded"] as const
export const ToolCancel = Schema.Struct({
  type: Schema.Literal("tool.cancel"),
  seq: Seq,
  callId: Schema.String,
  reason: Schema.Literals(cancelReasons)
}).annotate({
  description: "The outcome of a call is not waited for any more. The client ends it."
})

export const agentErrorCodes = [
  "bad_frame",
  "bad_protocol",
  "hello_required",
  "unknown_session",
  "not_owner",
  "workspace_mismatch",
  "busy",
  "unknown_call",
  "model_forbidden",
  "insufficient_credits",
  "rate_limited",
  "overloaded",
  "upstream_error",
  "context_overflow",
  "budget_exceeded",
  "internal"
] as const
export type AgentErrorCode = (typeof agentErrorCodes)[number]
const Code = Schema.Literals(agentErrorCodes)

export const promptStatuses = ["completed", "aborted", "error", "budget", "max_turns"] as const
export type PromptStatus = (typeof promptStatuses)[number]

export const PromptDone = Schema.Struct({
  type: Schema.Literal("prompt.done"),
  seq: Seq,
  id: Schema.String,
  status: Schema.Literals(promptStatuses),
  error: Schema.optionalKey(Schema.Struct({ code: Code, message: Schema.String })),
  usage: Tokens,
  costUsd: Schema.Finite,
  coveredBySubscription: Schema.Boolean.annotate({ description: "Every call that cost anything was" }),
  turns: Schema.Int,
  toolCalls: Schema.Int,
  toolCallsDenied: Schema.Int
}).annotate({ description: "The prompt came to its end. Sums are over all of its model calls and tools." })
export type PromptDone = typeof PromptDone.Type

export const Ping = Schema.Struct({ type: Schema.Literal("ping"), ts: Schema.Finite }).annotate({
  description: "Asks for a sign of life."
})

export const ErrorFrame = Schema.Struct({
  type: Schema.Literal("error"),
  code: Code,
  message: Schema.String,
  fatal: Schema.Boolean.annotate({ description: "The socket is closed after it" }),
  id: Schema.optionalKey(Schema.String),
  callId: Schema.optionalKey(Schema.String),
  retryAfterMs: Schema.optionalKey(Schema.Int)
}).annotate({ description: "Something was refused. Unless it is fatal the session goes on." })
export type ErrorFrame = typeof ErrorFrame.Type

export const byeReasons = [
  "client_bye",
  "superseded",
  "restart",
  "revoked",
  "ended",
  "idle",
  "slow",
  "protocol",
  "moved"
] as const
export const ServerBye = Schema.Struct({
  type: Schema.Literal("bye"),
  reason: Schema.Literals(byeReasons),
  resumable: Schema.Boolean,
  retryAfterMs: Schema.optionalKey(Schema.Int)
}).annotate({ description: "The socket is about to be closed, and why." })
export type ServerBye = typeof ServerBye.Type

export const ServerFrame = Schema.Union([
  Ready,
  ...Object.values(events),
  ToolRequest,
  ToolCancel,
  PromptDone,
  Ping,
  ErrorFrame,
  ServerBye
])
export type ServerFrame = typeof ServerFrame.Type

/** Close codes of the socket. Source: RFC 6455, 7.4; contract/agents#close-codes. */
export const closeCodes = {
  normal: 1000,
  tooBig: 1009,
  restart: 1012,
  protocol: 4000,
  revoked: 4001,
  idle: 4008,
  superseded: 4009,
  slow: 4013
} as const
