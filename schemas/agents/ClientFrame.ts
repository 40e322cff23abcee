import { Schema } from "effect"
import { FileId, SessionId } from "../core/Ids.ts"
import { line } from "../core/Text.ts"
import { agentLimits } from "./AgentLimits.ts"
import { ToolError } from "./ToolCall.ts"

/** Frames of a client, one JSON object each. Unknown fields are ignored. Source: contract/agents#client-frames. */

export const thinkingLevels = ["off", "minimal", "low", "medium", "high", "xhigh"] as const
export const ThinkingLevel = Schema.Literals(thinkingLevels)
export type ThinkingLevel = typeof ThinkingLevel.Type

const Id = line(1, 128)
const Text = Schema.String.check(Schema.isMinLength(1, { expected: "text that is not empty" })).annotate({
  description: `At most ${agentLimits.promptBytes / 1024} KiB as UTF-8`
})
const Seq = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0, { expected: "a sequence number" }))
const Model = line(1, 200)

export const Hello = Schema.Struct({
  type: Schema.Literal("hello"),
  protocol: Schema.Literal(1),
  client: Schema.Struct({
    version: line(1, 64),
    platform: line(1, 64),
    name: Schema.optionalKey(line(1, 64)),
    journalId: Schema.optionalKey(line(1, 64)).annotate({
      description: "Names the journal in which the client notes what it did of each call"
    })
  }),
  workspace: Schema.Struct({
    root: line(1, 4_096).annotate({ description: "An absolute path, as the client has it" }),
    name: line(1, 255)
  }),
  model: Schema.optionalKey(Model).annotate({
    description: "Absent: the session's, for a new one the default"
  }),
  thinkingLevel: Schema.optionalKey(ThinkingLevel),
  resume: Schema.optionalKey(SessionId).annotate({ description: "The session to attach to" }),
  lastSeq: Schema.optionalKey(Seq).annotate({
    description: "The last frame that was worked off; 0: everything again"
  }),
  budgetUsd: Schema.optionalKey(
    Schema.Finite.check(
      Schema.isBetween({ minimum: 0.000001, maximum: 1_000_000 }, { expected: "an amount above 0" })
    )
  ).annotate({ description: "What the whole session may cost at most" })
}).annotate({
  description:
    "Has to be the first frame: begins a session, or attaches to one that is there. It is answered with ready, or with a fatal error."
})
export type Hello = typeof Hello.Type

export const Prompt = Schema.Struct({
  type: Schema.Literal("prompt"),
  id: Id,
  text: Text,
  images: Schema.optionalKey(
    Schema.Array(FileId).check(
      Schema.isMaxLength(agentLimits.promptImages, {
        expected: `at most ${agentLimits.promptImages} ids of files`
      })
    )
  )
}).annotate({
  description:
    "Asks for work. It ends with prompt.done. A prompt whose id the session knows is not worked on twice."
})
export type Prompt = typeof Prompt.Type

export const Steer = Schema.Struct({
  type: Schema.Literal("steer"),
  id: Id,
  text: Text,
  mode: Schema.optionalKey(Schema.Literals(["steer", "follow_up"])).annotate({
    description: "steer (when absent): after the running turn's calls; follow_up: when the work would end"
  })
}).annotate({
  description:
    "Says something while a prompt is worked on. It waits in a queue (queue_update) until it is applied (steer_applied)."
})
export type Steer = typeof Steer.Type

export const Abort = Schema.Struct({
  type: Schema.Literal("abort"),
  id: Schema.optionalKey(Id).annotate({ description: "Of the prompt; absent: whichever runs" }),
  clearQueue: Schema.optionalKey(Schema.Boolean)
}).annotate({
  description: "Ends the prompt that runs, with status aborted. Its calls that are open are cancelled."
})

/** An addition to the contract. */
export const Compact = Schema.Struct({
  type: Schema.Literal("compact"),
  id: Id,
  instructions: Schema.optionalKey(Text)
}).annotate({ description: "Asks for a compaction now. It is answered as a prompt is, with prompt.done." })
export type Compact = typeof Compact.Type

export const ToolResult = Schema.Struct({
  type: Schema.Literal("tool.result"),
  callId: Id,
  ok: Schema.Boolean,
  result: Schema.optionalKey(Schema.Unknown).annotate({ description: "By method; where ok" }),
  error: Schema.optionalKey(ToolError).annotate({ description: "Where not ok" }),
  denied: Schema.optionalKey(Schema.Boolean).annotate({ description: "The client refused the call" }),
  durationMs: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0, { expected: "milliseconds" }))
}).annotate({
  description:
    "What came of a call. Sent when the outcome is durable in the journal of the client, and again where the call is asked for again."
})
export type ToolResult = typeof ToolResult.Type

export const ToolStream = Schema.Struct({
  type: Schema.Literal("tool.stream"),
  callId: Id,
  index: Seq.annotate({ description: "From 0 in each call; a repeated one is ignored" }),
  stream: Schema.Literals(["stdout", "stderr"]),
  data: Schema.String
}).annotate({
  description:
    "Output of a command while it runs. It is for those who watch; the model is given what tool.result says."
})
export type ToolStream = typeof ToolStream.Type

export const Pong = Schema.Struct({
  type: Schema.Literal("pong"),
  ts: Schema.Finite,
  ack: Seq.annotate({ description: "The last frame that was worked off" })
}).annotate({ description: "Answers ping, and says how far the client has come." })
export const ClientBye = Schema.Struct({
  type: Schema.Literal("bye"),
  reason: Schema.optionalKey(line(0, 256))
}).annotate({
  description: "The person is done: the session ends with client_bye. It can be resumed all the same."
})

export const ClientFrame = Schema.Union([
  Hello,
  Prompt,
  Steer,
  Abort,
  Compact,
  ToolResult,
  ToolStream,
  Pong,
  ClientBye
])
export type ClientFrame = typeof ClientFrame.Type
