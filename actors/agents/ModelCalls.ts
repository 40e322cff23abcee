import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ThinkingLevel } from "#schemas/agents/ClientFrame.ts"
import type { AgentErrorCode, ContentPart, stopReasons, Tokens } from "#schemas/agents/ServerFrame.ts"
import type { ChatMessage } from "#streams/agents/ChatContext.ts"

export interface ModelAsk {
  readonly keyId: string
  /** a model's id or `collection/{slug}` */
  readonly model: string
  readonly messages: ReadonlyArray<ChatMessage>
  /** whether the model may call the tools of an agent */
  readonly withTools: boolean
  readonly thinkingLevel: ThinkingLevel
  /** pico-USD that the call may cost at most; undefined: no bound but the account's */
  readonly budgetLeft: bigint | undefined
  /** a call id of its own for each tool call, in order */
  readonly callId: (index: number) => string
  readonly onDelta: (kind: "text_delta" | "thinking_delta", contentIndex: number, delta: string) => void
  /** aborts when the user cancels; tokens generated until then are charged */
  readonly signal: AbortSignal
}

/** A model's output and its cost. */
export interface ModelMessage {
  /** the model that answered */
  readonly model: string
  readonly content: ReadonlyArray<ContentPart>
  readonly stopReason: (typeof stopReasons)[number]
  readonly usage: Tokens
  /** pico-USD */
  readonly cost: bigint
  /** drawn from a plan's allowances */
  readonly covered: boolean
}

export type ModelAnswer =
  | { readonly _tag: "Answered"; readonly said: ModelMessage; readonly isCutByCredits: boolean }
  | { readonly _tag: "Aborted"; readonly said: ModelMessage }
  | { readonly _tag: "OverBudget" }
  | {
      readonly _tag: "Failed"
      readonly code: AgentErrorCode
      readonly message: string
      /** the same call may succeed later */
      readonly isPassing: boolean
      readonly retryAfterMillis: number | undefined
    }

/** The router, which makes, prices and settles model calls. A call that fails is a value, never an error. */
export class ModelCalls extends Context.Service<
  ModelCalls,
  {
    readonly call: (ask: ModelAsk) => Effect.Effect<ModelAnswer>
    /** tokens of the model's window; undefined: not known */
    readonly contextLength: (keyId: string, model: string) => number | undefined
  }
>()("signalbox/agents/ModelCalls") {}
