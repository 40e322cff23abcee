import type { ContentPart, PromptStatus, stopReasons, Tokens } from "#schemas/agents/ServerFrame.ts"
import type { ToolError } from "#schemas/agents/ToolCall.ts"

/**
 * The durable truth of a session: an append-only list of steps. A model's messages, the replay, and a run's
 * continuation after a crash are functions of it. Amounts are pico-USD as decimal text.
 */
export type StepBody =
  | PromptStep
  | CompactStep
  | QueuedStep
  | UnqueuedStep
  | AppliedStep
  | MessageStep
  | TakenStep
  | ResultStep
  | CompactionStep
  | DoneStep

/** The person asks. Everything up to `done` belongs to it. */
export interface PromptStep {
  readonly kind: "prompt"
  readonly id: string
  readonly text: string
  /** ids of account files */
  readonly images: ReadonlyArray<string>
}

/** The person asks for a compaction; handled like a prompt without turns. */
export interface CompactStep {
  readonly kind: "compact"
  readonly id: string
  readonly instructions: string
}

/** A steer or follow-up was taken and waits. */
export interface QueuedStep {
  readonly kind: "queued"
  readonly id: string
  readonly text: string
  readonly mode: "steer" | "follow_up"
}

/** Waiting input was discarded. */
interface UnqueuedStep {
  readonly kind: "unqueued"
}

/** Queued input became a part of the conversation here. */
export interface AppliedStep {
  readonly kind: "applied"
  readonly id: string
  readonly text: string
}

/** A model's message. Its tool calls are intended from here on: none is sent before this is stored. */
export interface MessageStep {
  readonly kind: "message"
  readonly messageId: string
  /** the model that answered */
  readonly model: string
  readonly content: ReadonlyArray<ContentPart>
  readonly stopReason: (typeof stopReasons)[number]
  readonly usage: Tokens
  readonly cost: string
  /** drawn from a plan's allowances */
  readonly covered: boolean
}

/** These calls were sent to the client with this journal; stored before they are. */
interface TakenStep {
  readonly kind: "taken"
  readonly callIds: ReadonlyArray<string>
  readonly journalId: string
}

/** The result of a tool call. */
export interface ResultStep {
  readonly kind: "result"
  readonly callId: string
  readonly ok: boolean
  /** by method, where ok */
  readonly result?: unknown
  readonly error?: ToolError
  readonly denied: boolean
  readonly durationMs: number
}

/** A summary replaces everything before step `keepFrom` for models from here on. */
export interface CompactionStep {
  readonly kind: "compaction"
  readonly summary: string
  /** the index of the first step that models see in full */
  readonly keepFrom: number
  /** an estimate of the context after it */
  readonly tokens: number
  readonly usage: Tokens
  readonly cost: string
  readonly covered: boolean
}

/** The prompt came to its end. */
interface DoneStep {
  readonly kind: "done"
  readonly id: string
  readonly status: PromptStatus
  readonly error?: { readonly code: string; readonly message: string }
  readonly usage: Tokens
  readonly cost: string
  readonly covered: boolean
  readonly turns: number
  readonly toolCalls: number
  readonly toolCallsDenied: number
}

export interface Step {
  /** from 0, without holes */
  readonly index: number
  /** of the frame that tells the client of it; 0: none does */
  readonly seq: number
  /** "" outside of a prompt */
  readonly promptId: string
  /** epoch milliseconds */
  readonly at: number
  readonly body: StepBody
}
