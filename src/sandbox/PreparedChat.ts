import type { Answer } from "./Answer.ts"
import type { Call, Shared } from "./Call.ts"
import type { ChatRequest } from "./ChatRequest.ts"
import type { SandboxModel } from "./SandboxModel.ts"
import { type PromptSize, type Usage, usageOf } from "./Tokens.ts"
import type { Named } from "./Wire.ts"

/** A call as the sandbox has it before it answers. */
export interface PreparedChat {
  readonly shared: Shared
  readonly call: Call
  readonly request: ChatRequest
  readonly model: SandboxModel
  readonly named: Named
  readonly size: PromptSize
  readonly answer: Answer
  /** JSON texts, each one token */
  readonly deltas: ReadonlyArray<string>
}

/** The usage of a call whose answer has come so far. */
export const usageAfter = ({ answer, model, size }: PreparedChat, tokens: number): Usage =>
  usageOf(model, size, tokens, Math.min(tokens, answer.reasoning.length))

/** Before every piece, if a pace is set. */
export const pieceMillisOf = ({ answer, model, request }: PreparedChat): number | undefined =>
  request.play.wordMillis ?? answer.pieceMillis ?? model.wordMillis

export const firstPieceMillisOf = ({ answer, request }: PreparedChat): number =>
  request.play.firstWordMillis ?? answer.pieceMillis ?? 0
