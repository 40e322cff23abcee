import { Effect } from "effect"
import type { CollectionRoute } from "#actors/llm/CollectionRoutes.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import type { Admission, AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import type { CallTally } from "./CallTally.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { AnswerStream, Client } from "./ClientStream.ts"
import type { Candidates } from "./Candidates.ts"
import { TokenCounter } from "./TokenCounter.ts"

/** Services that every call needs. */
export interface CallParts {
  readonly upstream: Upstream["Service"]
  readonly log: CallLog["Service"]
  readonly counter: TokenCounter["Service"]
  readonly limits: Limits
  /** there is a collector of spans (OTEL_EXPORTER_OTLP_ENDPOINT) */
  readonly isTraced: boolean
}

export const makeCallParts = Effect.gen(function* () {
  const { limits, otelEndpoint } = yield* AppConfig
  const parts: CallParts = {
    upstream: yield* Upstream,
    log: yield* CallLog,
    counter: yield* TokenCounter,
    limits,
    isTraced: otelEndpoint !== undefined
  }
  return parts
})

/** The fields that all chunks of one stream share. */
export interface ChunkHead {
  readonly id: string
  /** epoch seconds */
  readonly created: number
  readonly model: string
}

/** The destination of an answer. */
export interface AnswerSink {
  /** the whole answer of a plain call */
  readonly json: (body: unknown) => void
  /** the beginning of a streamed one; `onDrain` is called when the client has taken all waiting bytes */
  readonly stream: (onDrain: () => void) => AnswerStream
  /** the model has begun to answer: the fields that the chunks of its stream share */
  readonly began: (head: ChunkHead) => void
  /** The stream ends with an error: the part that was sent does not count as an answer. */
  readonly failedMidStream: () => void
}

/** One admitted call: its caller and request, the models that may answer, and its hold. */
export interface Call {
  readonly key: Principal
  readonly request: ChatRequest
  readonly candidates: Candidates
  readonly client: Client
  readonly sink: AnswerSink
  readonly admission: Admission
  /** the ask to the ledger */
  readonly ask: AdmissionAsk
  readonly tally: CallTally
  readonly route: CollectionRoute | undefined
}

/** The stage of a call that answers. */
export interface LastStage {
  /** the request to a model; asked once for each try */
  readonly bodyOf: (model: CatalogueModel) => OutgoingBody
  /** images in the request to the models */
  readonly images: number
}
