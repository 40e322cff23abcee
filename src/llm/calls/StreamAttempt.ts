import { Effect } from "effect"
import type { Limits } from "#src/Limits.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { Upstream, UpstreamCall, UpstreamListener } from "#src/infra/upstream/Upstream.ts"
import { kindOf } from "#streams/llm/ChunkScan.ts"
import { type ChatChunk, readChunk } from "#streams/llm/ChatChunk.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { dataOf, SseFrames } from "#streams/llm/SseFrames.ts"
import { type AttemptFailure, failureOf, failureOfStatus, upstreamFailure } from "./AttemptFailure.ts"
import type { AnswerStream } from "./CallParts.ts"
import type { Client } from "./Client.ts"
import type { GrowingHold } from "./GrowingHold.ts"
import { Produced } from "./Produced.ts"

/** What came of one try of one model for a stream. */
export type StreamOutcome =
  | { readonly _tag: "Streamed"; readonly streamed: Streamed }
  /** before anything was shown to the client: another model may be tried */
  | { readonly _tag: "Failed"; readonly failure: AttemptFailure }
  | { readonly _tag: "ClientGone" }

/** A stream that has shown content to the client. */
export interface Streamed {
  /** "cut": the credits were used up; "gone": the client left; "failed": the upstream did not come to the end */
  readonly end: "finished" | "cut" | "gone" | "failed"
  readonly failure: AttemptFailure | undefined
  /** the first chunk with content: id, created and model of the stream */
  readonly first: JsonRecord
  /** the usage object as the upstream sent it */
  readonly usage: JsonRecord | undefined
  readonly produced: Produced
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
  /** hears how to slow the upstream down and let it go on, for when the client does not keep up */
  readonly onCall: (call: Pick<UpstreamCall, "resume">) => void
}

/**
 * One try of one model for a stream. Events with content go to the client as they came, byte for byte, from the first
 * one on that says something; those with usage or an error are read. Source: decisions, LLM (Streams).
 */
export const streamAttempt = (ask: StreamAsk): Effect.Effect<StreamOutcome> =>
  Effect.callback((resume) => {
    if (ask.client.isGone) return resume(Effect.succeed({ _tag: "ClientGone" }))
    const attempt = new StreamAttempt(ask, (outcome) => resume(Effect.succeed(outcome)))
    return Effect.sync(() => attempt.dispose())
  })

const isWhole = (frame: Buffer): boolean =>
  kindOf(frame) === "done" || readChunk(dataOf(frame) ?? "") !== undefined

/** Bytes of an error's body that are read. */
const errorBytesMax = 64 * 1024

class StreamAttempt implements UpstreamListener {
  readonly #ask: StreamAsk
  readonly #done: (outcome: StreamOutcome) => void
  readonly #frames: SseFrames
  readonly #produced: Produced
  readonly #call: UpstreamCall
  readonly #stopListening: () => void
  #timer: NodeJS.Timeout
  #status = 0
  #retryAfter: string | undefined
  #errorPieces: Array<Buffer> = []
  #errorBytes = 0
  /** events before the first content: shown together with it */
  #held: Array<Buffer> = []
  #first: JsonRecord | undefined
  #firstTokenAt = 0
  #usage: JsonRecord | undefined
  #isOver = false
  #isSlow = false

  constructor(ask: StreamAsk, done: (outcome: StreamOutcome) => void) {
    const { client, limits, upstream } = ask
    this.#ask = ask
    this.#done = done
    this.#produced = new Produced(limits.producedBytes)
    this.#frames = new SseFrames(limits.upstreamAnswerBytes, (frame) => this.#take(frame))
    this.#stopListening = client.onGone(() => this.#end("gone"))
    this.#timer = setTimeout(
      () => this.#fail(`The model said nothing within ${limits.firstTokenMillis / 1_000} s`),
      limits.firstTokenMillis
    )
    this.#call = upstream.post("/chat/completions", ask.body, this)
    ask.onCall({ resume: () => this.#goOn() })
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#retryAfter = header("retry-after")
  }

  data(bytes: Buffer): void {
    if (this.#status !== 200) {
      this.#errorBytes += bytes.length
      if (this.#errorBytes <= errorBytesMax) this.#errorPieces.push(bytes)
      else this.ended()
      return
    }
    if (this.#first !== undefined) this.#timer.refresh()
    if (!this.#frames.push(bytes)) this.#fail("The model sent an event that is too large")
  }

  ended(): void {
    if (this.#isOver) return
    if (this.#status !== 200) {
      const body = Buffer.concat(this.#errorPieces).toString("utf8")
      return this.#failWith(failureOf(this.#status, body, this.#retryAfter))
    }
    // The blank line behind the last event may be missing. One that was cut itself says nothing.
    const last = Buffer.from(`${this.#frames.rest.toString("utf8").trimEnd()}\n\n`)
    if (isWhole(last)) this.#take(last)
    if (this.#isOver) return
    if (this.#first === undefined) return this.#fail("The model's answer was empty")
    // Some upstreams leave out [DONE]: a stream that said why it ended has ended well.
    if (this.#produced.finishReason !== undefined) this.#end("finished")
    else this.#fail("The model's answer broke off")
  }

  failed(): void {
    if (this.#isOver) return
    // All was said: what is missing is the usage at most, and that can be counted.
    if (this.#first !== undefined && this.#produced.finishReason !== undefined) return this.#end("finished")
    this.#fail("The connection to the model broke")
  }

  /** Lets go of everything without an outcome. */
  dispose(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#stopListening()
    this.#call.abort()
  }

  #take(frame: Buffer): void {
    if (this.#isOver) return
    const kind = kindOf(frame)
    if (kind === "comment") return
    if (kind === "done") {
      if (this.#first === undefined) this.#fail("The model's answer was empty")
      else this.#end("finished")
    } else if (kind === "content" && this.#first !== undefined) this.#show(frame)
    else this.#read(frame)
  }

  /** An event whose JSON matters: before the first content all of them, afterwards those that are special. */
  #read(frame: Buffer): void {
    const chunk = readChunk(dataOf(frame) ?? "")
    if (chunk === undefined) return this.#fail("The model's answer was cut or is no JSON")
    if (chunk.error !== undefined) {
      const { message, status } = chunk.error
      return this.#failWith(failureOfStatus(status ?? 502, message, null, undefined))
    }
    const { usage } = chunk.json
    const cleaned = usage === undefined || usage === null ? frame : this.#withoutUsage(chunk, usage)
    if (cleaned === undefined) return
    if (this.#first !== undefined) return this.#show(cleaned)
    this.#held.push(Buffer.from(cleaned))
    if (chunk.hasContent) this.#begin(chunk.json)
  }

  /** Usage is told at the end, without the upstream's own cost; an event that carries nothing else goes no further. */
  #withoutUsage(chunk: ChatChunk, usage: unknown): Buffer | undefined {
    if (isJsonRecord(usage)) this.#usage = usage
    if (!chunk.hasContent && chunk.finishReason === undefined) return undefined
    const { usage: _, ...rest } = chunk.json
    return Buffer.from(`data: ${JSON.stringify(rest)}\n\n`)
  }

  #begin(first: JsonRecord): void {
    this.#first = first
    this.#firstTokenAt = Date.now()
    clearTimeout(this.#timer)
    const { streamSilenceMillis } = this.#ask.limits
    this.#timer = setTimeout(() => this.#silent(), streamSilenceMillis)
    for (const frame of this.#held) this.#show(frame)
    this.#held = []
  }

  #show(frame: Buffer): void {
    const { hold, stream } = this.#ask
    this.#produced.add(frame)
    const isTaken = stream.write(frame)
    // What fills the hold is shown still: it is paid.
    if (hold.isUsedUp(this.#produced.tokens)) return this.#end("cut")
    if (isTaken) return
    this.#isSlow = true
    this.#call.pause()
  }

  /** The client has taken what there was. */
  #goOn(): void {
    if (!this.#isSlow || this.#isOver) return
    this.#isSlow = false
    this.#timer.refresh()
    this.#call.resume()
  }

  #silent(): void {
    // It is the client that is slow then, and the front that looks after it.
    if (this.#isSlow) return void this.#timer.refresh()
    this.#fail(`The model was silent for ${this.#ask.limits.streamSilenceMillis / 1_000} s`)
  }

  #fail(message: string): void {
    this.#failWith(upstreamFailure(message))
  }

  #failWith(failure: AttemptFailure): void {
    if (this.#first !== undefined) this.#end("failed", failure)
    else this.#finish({ _tag: "Failed", failure })
  }

  #end(end: Streamed["end"], failure?: AttemptFailure): void {
    const first = this.#first
    if (first === undefined) return this.#finish({ _tag: "ClientGone" })
    this.#finish({
      _tag: "Streamed",
      streamed: {
        end,
        failure,
        first,
        usage: this.#usage,
        produced: this.#produced,
        firstTokenAt: this.#firstTokenAt
      }
    })
  }

  #finish(outcome: StreamOutcome): void {
    if (this.#isOver) return
    this.dispose()
    this.#done(outcome)
  }
}
