import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { Limits } from "#src/Limits.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { Upstream, UpstreamCall } from "#src/infra/upstream/Upstream.ts"
import type { AttemptFailure } from "./AttemptFailure.ts"
import type { AnswerStream } from "./CallParts.ts"
import type { Client } from "./ClientStream.ts"
import type { GrowingHold } from "./Settling.ts"
import type { StreamedOutput } from "./StreamedOutput.ts"
import type { Spent } from "./Spent.ts"

/** The outcome of one try of one model for a stream. */
export type StreamOutcome =
  | { readonly _tag: "Streamed"; readonly streamed: Streamed }
  /** before anything was shown to the client: another model may be tried */
  | { readonly _tag: "Failed"; readonly failure: AttemptFailure; readonly spent: Spent }
  | { readonly _tag: "ClientGone"; readonly spent: Spent }

/** A stream that has shown content to the client. */
export interface Streamed {
  /** "cut": the credits were used up; "gone": the client left; "failed": the upstream did not come to the end */
  readonly end: "finished" | "cut" | "gone" | "failed"
  readonly failure: AttemptFailure | undefined
  /** the first chunk with content: id, created and model of the stream */
  readonly first: JsonRecord
  readonly spent: Spent
  readonly produced: StreamedOutput
  /** epoch milliseconds of the first content */
  readonly firstTokenAt: number
}

export interface StreamAsk {
  readonly upstream: Upstream["Service"]
  readonly body: OutgoingBody
  readonly client: Client
  readonly stream: AnswerStream
  readonly hold: GrowingHold
  readonly limits: Limits
  /** answers wanted to one question */
  readonly choices: number
  /** the first content has to come within this */
  readonly firstTokenMillis: number
  /** receives the first chunk with content, before it is shown */
  readonly onFirst: (first: JsonRecord) => void
  /** the model may think unseen, and its thoughts have to be paid */
  readonly thinks: boolean
  /** counts the tokens of a text; does not fail */
  readonly count: (text: string) => Promise<number>
  /** receives the functions that slow the upstream down and let it go on, for a client that does not keep up */
  readonly onCall: (call: Pick<UpstreamCall, "resume">) => void
}
