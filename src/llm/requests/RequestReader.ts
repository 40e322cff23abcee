import { Effect } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { JobKind } from "#src/infra/workers/Job.ts"
import { type JobNotDone, Workers } from "#src/infra/workers/Workers.ts"
import { type ChatRequest, readChatRequest } from "./ChatRequest.ts"
import { type EmbeddingsRequest, readEmbeddingsRequest } from "./EmbeddingsRequest.ts"
import type { JsonBounds } from "#schemas/core/JsonBounds.ts"
import { readJson, TooMuchJson } from "./JsonRequest.ts"
import { PreparedBody } from "./PreparedBody.ts"
import { RequestFault } from "./JsonRequest.ts"
import type { ReadAnswer, ReadAsk } from "./RequestThread.ts"

/** A body that is read. */
export interface BodyToRead {
  /** its bytes are gone if `isKept` is false and it was read in a thread */
  readonly bytes: Buffer
  readonly isKept: boolean
  /** the owner: bodies of different users take turns in the threads */
  readonly userId: string
  /** receives the number of bytes still held, once the rest was sent upstream for the last time */
  readonly onLetGo: (bytesLeft: number) => void
}

/** Reads bodies: small ones at once, large ones and those of many members in a thread. */
export interface RequestReader {
  readonly chat: (body: BodyToRead) => Read<ChatRequest>
  readonly embeddings: (body: BodyToRead) => Read<EmbeddingsRequest>
}

/** At once, or later. */
export type Read<A> = A | RequestFault | Effect.Effect<A | RequestFault, JobNotDone>

/** Reading in place takes some milliseconds at worst. */
const inPlaceBytes = 128 * 1024
const inPlaceBounds: JsonBounds = { members: 4_000, values: 40_000 }

export const makeRequestReader: Effect.Effect<RequestReader, never, Workers | AppConfig> = Effect.gen(
  function* () {
    const workers = yield* Workers
    const { limits } = yield* AppConfig
    // The bounds of readJson hold before anything large is made: a thread is safe, and takes bytes without a copy.
    const kind: JobKind = {
      module: new URL("./RequestThread.ts", import.meta.url),
      isolation: "thread",
      deadlineMillis: limits.bodyReadMillis,
      memoryMegabytes: limits.bodyReadHeapMegabytes
    }
    const inThread = (form: ReadAsk["kind"], { bytes, isKept, userId }: BodyToRead) => {
      const own = isKept || !isWhole(bytes) ? Uint8Array.from(bytes) : new Uint8Array(bytes.buffer)
      const ask: ReadAsk = { kind: form, bytes: own, countedCharacters: limits.countedCharacters }
      return Effect.map(
        workers.run({ kind, owner: userId, ask, transfer: [own.buffer] }),
        // RequestThread.ts is this module's other half.
        (answer) => answer as ReadAnswer
      )
    }
    return {
      chat: (body) =>
        readInPlace(body.bytes, readChatRequest) ?? Effect.map(inThread("chat", body), chatOf(body)),
      embeddings: (body) =>
        readInPlace(body.bytes, readEmbeddingsRequest) ??
        Effect.map(inThread("embeddings", body), embeddingsOf(body))
    }
  }
)

/** Bytes that share their buffer with others cannot be moved. */
const isWhole = (bytes: Buffer): bytes is Buffer<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength

const readInPlace = <A>(
  bytes: Buffer,
  read: (json: unknown) => A | RequestFault
): A | RequestFault | undefined => {
  if (bytes.length > inPlaceBytes) return undefined
  const json = readJson(bytes, inPlaceBounds)
  // The thread sees whether it is too large altogether.
  if (json instanceof TooMuchJson) return undefined
  return json instanceof RequestFault ? json : read(json)
}

const faultOf = ({ code, param, problem }: Pick<RequestFault, "code" | "param" | "problem">): RequestFault =>
  new RequestFault(param, problem, code)

const chatOf =
  ({ onLetGo }: BodyToRead) =>
  (answer: ReadAnswer): ChatRequest | RequestFault => {
    if (answer._tag === "Chat") return { ...answer.figures, source: new PreparedBody(answer.parts, onLetGo) }
    if (answer._tag === "Fault") return faultOf(answer.fault)
    throw new Error(`a completion was read as ${answer._tag}`)
  }

const embeddingsOf =
  ({ onLetGo }: BodyToRead) =>
  (answer: ReadAnswer): EmbeddingsRequest | RequestFault => {
    if (answer._tag === "Fault") return faultOf(answer.fault)
    if (answer._tag !== "Embeddings") throw new Error(`embeddings were read as ${answer._tag}`)
    const { figures, text } = answer
    const pieces = [answer.body]
    return { ...figures, text, outgoing: () => ({ pieces, onSent: () => onLetGo(text?.length ?? 0) }) }
  }
