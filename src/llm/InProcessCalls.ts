import { invalidRequest } from "./calls/CallFault.ts"
import { Context, Effect, Fiber, Layer } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { type CallRecord, nothingDrawn } from "#streams/llm/CallRecord.ts"
import { errorIn } from "#streams/llm/ChatChunk.ts"
import { RepeatedChunk } from "#streams/llm/RepeatedChunk.ts"
import { SseFrames } from "#streams/llm/SseFrames.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { AnswerStream } from "./calls/ClientStream.ts"
import { Client } from "./calls/ClientStream.ts"
import { Completions } from "./calls/Completions.ts"
import { readChatRequest } from "./requests/ChatRequest.ts"
import { RequestFault } from "./requests/JsonRequest.ts"

interface InProcessAsk {
  readonly key: Principal
  readonly source: "agent"
  /** as POST /chat/completions takes it; it is streamed */
  readonly body: JsonRecord
  /** Each chunk of the answer, as it comes; valid until this returns. */
  readonly onChunk: (chunk: JsonRecord) => void
  /** the answer is no longer wanted: its tokens until then are paid */
  readonly signal: AbortSignal
}

/** The outcome of a call, and its record. */
export interface InProcessOutcome {
  /** the reason for a missing answer, as an HTTP client would get it */
  readonly fault: Problem | undefined
  /** the reason why the answer broke off */
  readonly problem: string | undefined
  /** the caller had gone before the end */
  readonly isGone: boolean
  /** the answer ends where the credits did */
  readonly isCutByCredits: boolean
  /** the model that answered; "" where none did */
  readonly resolved: string
  readonly promptTokens: number
  readonly completionTokens: number
  /** pico-USD charged to credits */
  readonly charge: bigint
  /** drawn from a plan's allowances */
  readonly covered: boolean
}

/** One event is at most an upstream's answer long. */
const eventBytesMax = 32 * 1024 * 1024

/**
 * Completions for other rooms of this process, without HTTP between: routed, priced, metered and settled as every other
 * call. A call that was begun is brought to an end even without its caller: an interrupted caller's call is the
 * platform's loss, because it will be made again.
 */
export class InProcessCalls extends Context.Service<
  InProcessCalls,
  { readonly call: (ask: InProcessAsk) => Effect.Effect<InProcessOutcome> }
>()("signalbox/llm/InProcessCalls") {
  static readonly layer = Layer.effect(
    InProcessCalls,
    Effect.gen(function* () {
      const completions = yield* Completions
      const scope = yield* Effect.scope

      const make = Effect.fnUntraced(function* (
        { body, key, onChunk, source }: InProcessAsk,
        client: Client
      ) {
        const request = readChatRequest(body)
        if (request instanceof RequestFault) return outcomeOf(client, invalidRequest(request))
        const answer = new ChunkReader(onChunk)
        let record: CallRecord | undefined
        const id = newId("req")
        const fault = yield* completions.complete({
          id,
          requestId: id,
          key,
          source,
          request,
          client,
          sink: { json: nothing, stream: () => answer, began: nothing, failedMidStream: nothing },
          startedAt: Date.now(),
          onRecord: (written) => {
            record = written
          }
        })
        return outcomeOf(client, fault, answer, record)
      })

      return InProcessCalls.of({
        call: (ask) =>
          Effect.gen(function* () {
            const leaving = new AbortController()
            const leave = () => leaving.abort()
            const abandon = () => {
              client.abandon()
              leave()
            }
            const client = new Client({
              onAbort: (listener) => leaving.signal.addEventListener("abort", listener, { once: true })
            })
            ask.signal.addEventListener("abort", leave, { once: true })
            if (ask.signal.aborted) leave()
            const fiber = yield* Effect.forkIn(make(ask, client), scope)
            return yield* Fiber.join(fiber).pipe(
              Effect.onInterrupt(() => Effect.sync(abandon)),
              Effect.ensuring(Effect.sync(() => ask.signal.removeEventListener("abort", leave)))
            )
          })
      })
    })
  )
}

const nothing = (): void => undefined

const outcomeOf = (
  { isGone }: Client,
  fault: Problem | undefined,
  answer?: ChunkReader,
  record?: CallRecord
): InProcessOutcome => {
  const { charge, covered } = record?.settlement ?? nothingDrawn
  return {
    fault,
    problem: answer?.problem,
    isGone,
    isCutByCredits: answer?.isCutByCredits ?? false,
    resolved: record?.resolved ?? "",
    promptTokens: record?.promptTokens ?? 0,
    completionTokens: record?.completionTokens ?? 0,
    charge: BigInt(charge),
    covered
  }
}

/** The event stream of an answer, read where it is made. */
class ChunkReader implements AnswerStream {
  isOpen = false
  problem: string | undefined
  isCutByCredits = false
  readonly #onChunk: (chunk: JsonRecord) => void
  readonly #frames: SseFrames
  readonly #chunks = new RepeatedChunk()

  constructor(onChunk: (chunk: JsonRecord) => void) {
    this.#onChunk = onChunk
    this.#frames = new SseFrames(eventBytesMax, (frame) => this.#read(frame))
  }

  /** A caller in this process takes everything: the model need not wait. */
  write(piece: string | Uint8Array): boolean {
    this.isOpen = true
    this.#frames.push(
      typeof piece === "string"
        ? Buffer.from(piece)
        : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    )
    return true
  }

  end(piece: string): void {
    this.write(piece)
  }

  dispose(): void {
    this.isOpen = false
  }

  #read(frame: Buffer): void {
    const chunk = this.#chunks.read(frame)
    if (chunk === undefined) return
    const { router } = chunk
    if (isJsonRecord(router)) this.isCutByCredits = router["truncated"] === "credits"
    this.problem = errorIn(chunk)?.message ?? this.problem
    this.#onChunk(chunk)
  }
}
