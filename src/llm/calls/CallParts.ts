import type { CollectionRoute } from "#actors/llm/CollectionRoutes.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Limits } from "#src/Limits.ts"
import type { Upstream } from "#src/infra/upstream/Upstream.ts"
import type { Admission, AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import type { CallLog } from "#src/llm/usage/CallLog.ts"
import type { CallTally } from "./CallTally.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { AnswerStream, Client } from "./ClientStream.ts"
import type { Candidates } from "./Candidates.ts"
import type { TokenCounter } from "./TokenCounter.ts"

/** What every call is made with. */
export interface CallParts {
  readonly upstream: Upstream["Service"]
  readonly log: CallLog["Service"]
  readonly counter: TokenCounter["Service"]
  readonly limits: Limits
  /** there is a collector of spans (OTEL_EXPORTER_OTLP_ENDPOINT) */
  readonly isTraced: boolean
}

/** What the chunks of one stream have in common. */
export interface ChunkHead {
  readonly id: string
  /** epoch seconds */
  readonly created: number
  readonly model: string
}

/** Where an answer goes. */
export interface AnswerSink {
  /** the whole answer of a plain call */
  readonly json: (body: unknown) => void
  /** the beginning of a streamed one; `onDrain` is called when the client has taken what waited for it */
  readonly stream: (onDrain: () => void) => AnswerStream
  /** the model has begun to speak: what the chunks of its stream have in common */
  readonly began: (head: ChunkHead) => void
  /** The stream ends with an error: what was sent of it does not count as an answer. */
  readonly failedMidStream: () => void
}

/** One call that was let in: who asks for what, who may answer, and what is held for it. */
export interface Call {
  readonly key: Principal
  readonly request: ChatRequest
  readonly candidates: Candidates
  readonly client: Client
  readonly sink: AnswerSink
  readonly admission: Admission
  /** what was asked of the ledger */
  readonly ask: AdmissionAsk
  readonly tally: CallTally
  readonly route: CollectionRoute | undefined
}
