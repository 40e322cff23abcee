import { Schema } from "effect"
import { SessionId } from "../core/Ids.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { ThinkingLevel } from "./ClientFrame.ts"
import { promptStatuses, stopReasons } from "./ServerFrame.ts"
import { ToolError } from "./ToolCall.ts"

const usd = Schema.Finite.annotate({ description: "USD" })

export const sessionStatuses = ["starting", "idle", "running", "detached", "ended"] as const
export const endReasons = ["client_bye", "ended_by_owner", "expired", "revoked", "error"] as const

const sessionFields = {
  id: SessionId,
  status: Schema.Literals(sessionStatuses).annotate({
    description: "idle and running are of a session with a client attached; detached is without"
  }),
  live: Schema.Boolean.annotate({
    description: "Its owner's process has it: false once it ended, or was detached for 15 minutes"
  }),
  model: Schema.String,
  thinking_level: ThinkingLevel,
  workspace: Schema.Struct({ root: Schema.String, name: Schema.String }).annotate({
    description: "As the client reported it"
  }),
  client: Schema.Struct({ version: Schema.String, platform: Schema.String }),
  prompts: Schema.Int,
  tool_calls: Schema.Int,
  tool_calls_denied: Schema.Int.annotate({ description: "Refused by the client" }),
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  cost_usd: usd.annotate({
    description: "USD charged to credits for its model calls; what a plan covered costs nothing here"
  }),
  started_at: Timestamp,
  last_seen_at: Timestamp,
  ended_at: Schema.NullOr(Timestamp),
  end_reason: Schema.NullOr(Schema.Literals(endReasons))
}

/** Source: contract/agents#sessions. */
export const AgentSession = Schema.Struct(sessionFields).annotate({
  identifier: "AgentSession",
  description: "A session of the coding agent. It can be resumed for 30 days after it was last seen"
})
export type AgentSession = typeof AgentSession.Type

export const AgentSessionList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(AgentSession)
}).annotate({ identifier: "AgentSessionList", description: "Sessions, the latest first" })

const entry = <const T extends string, F extends Schema.Struct.Fields>(type: T, fields: F) =>
  Schema.Struct({
    step: Schema.Int.annotate({ description: "Where it is in the session, from 0" }),
    type: Schema.Literal(type),
    at: Timestamp,
    prompt_id: Schema.String,
    ...fields
  })

const usage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int
})
const paid = {
  usage,
  cost_usd: usd,
  covered_by_subscription: Schema.Boolean
}

/** A tool call of a model, and its outcome. */
export const TranscriptToolCall = Schema.Struct({
  call_id: Schema.String,
  tool: Schema.String,
  args: Schema.Unknown.annotate({ description: "Text where the model wrote no JSON" }),
  ok: Schema.NullOr(Schema.Boolean).annotate({ description: "null while nothing is known of it" }),
  result: Schema.optionalKey(Schema.Unknown).annotate({ description: "By tool, where ok" }),
  error: Schema.optionalKey(ToolError),
  denied: Schema.Boolean.annotate({ description: "Refused by the client" }),
  duration_ms: Schema.NullOr(Schema.Finite)
}).annotate({ identifier: "AgentToolCall" })
export type TranscriptToolCall = typeof TranscriptToolCall.Type

export const TranscriptEntry = Schema.Union([
  entry("prompt", { text: Schema.String, images: Schema.Array(Schema.String) }),
  entry("compact", { instructions: Schema.String }),
  entry("queued", { id: Schema.String, mode: Schema.Literals(["steer", "follow_up"]), text: Schema.String }),
  entry("unqueued", {}),
  entry("applied", { id: Schema.String, text: Schema.String }),
  entry("message", {
    message_id: Schema.String,
    model: Schema.String,
    content: Schema.Array(
      Schema.Struct({ type: Schema.Literals(["text", "thinking"]), text: Schema.String })
    ),
    tool_calls: Schema.Array(TranscriptToolCall),
    stop_reason: Schema.Literals(stopReasons),
    ...paid
  }),
  entry("compaction", {
    summary: Schema.String,
    tokens: Schema.Int.annotate({ description: "An estimate of the conversation's length after it" }),
    ...paid
  }),
  entry("done", {
    status: Schema.Literals(promptStatuses),
    error: Schema.optionalKey(Schema.Struct({ code: Schema.String, message: Schema.String })),
    turns: Schema.Int,
    tool_calls: Schema.Int,
    tool_calls_denied: Schema.Int,
    ...paid
  })
]).annotate({ identifier: "AgentTranscriptEntry" })
export type TranscriptEntry = typeof TranscriptEntry.Type

export const AgentSessionDetail = Schema.Struct({
  ...sessionFields,
  transcript: Schema.Struct({
    object: Schema.Literal("list"),
    data: Schema.Array(TranscriptEntry),
    next: Schema.NullOr(Schema.Int).annotate({
      description: "What `after` has to be for what follows; null: nothing does yet"
    })
  }).annotate({ description: "What was said and done, in order" })
}).annotate({ identifier: "AgentSessionDetail", description: "A session and a page of its transcript" })
export type AgentSessionDetail = typeof AgentSessionDetail.Type
