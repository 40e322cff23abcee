import { Effect } from "effect"
import type { Limits } from "#src/Limits.ts"
import type { Upstream, UpstreamCall, UpstreamListener } from "#src/infra/upstream/Upstream.ts"
import { kindOf } from "#streams/llm/ChunkScan.ts"
import { type ChatChunk, errorInEvent, parseRecord, readChunk } from "#streams/llm/ChatChunk.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { dataOf, eventNameOf, SseFrames } from "#streams/llm/SseFrames.ts"
import { withoutCosts } from "#streams/llm/UpstreamUsage.ts"
import { chunksOf } from "#streams/llm/WholeAnswer.ts"
import { type AttemptFailure, failureOf, failureOfError, upstreamFailure } from "./AttemptFailure.ts"
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
  readonly body: string
  readonly client: Client
  readonly stream: AnswerStream
  readonly hold: GrowingHold
  readonly limits: Limits
  /** answers wanted to one question */
  readonly choices: number
  /** the first content has to come within this */
  readonly firstTokenMillis: number
  /** hears the first chunk with content, before it is shown */
  readonly onFirst: (first: JsonRecord) => void
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

const blank = /^[\s\uFEFF]*$/

/** An event that has come, and its JSON where it was read. */
interface Held {
  readonly frame: Buffer
  readonly chunk: ChatChunk
}

const frameOf = (chunk: JsonRecord): Buffer => Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`)

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
  /** "whole": no event stream, but an answer or an error in one piece */
  #form: "unknown" | "events" | "whole" = "unknown"
  #pieces: Array<Buffer> = []
  #bytes = 0
  /** events before the first content: shown together with it */
  #held: Array<Held> = []
  #first: JsonRecord | undefined
  #firstTokenAt = 0
  #usage: JsonRecord | undefined
  #isOver = false
  #isSlow = false

  constructor(ask: StreamAsk, done: (outcome: StreamOutcome) => void) {
    const { client, firstTokenMillis, limits, upstream } = ask
    this.#ask = ask
    this.#done = done
    this.#produced = new Produced(limits.producedBytes)
    this.#frames = new SseFrames(limits.upstreamAnswerBytes, (frame) => this.#take(frame))
    this.#stopListening = client.onGone(() => this.#end("gone"))
    this.#timer = setTimeout(
      () => this.#fail(`The model said nothing within ${firstTokenMillis / 1_000} s`),
      firstTokenMillis
    )
    this.#call = upstream.post("/chat/completions", ask.body, this)
    ask.onCall({ resume: () => this.#goOn() })
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#retryAfter = header("retry-after")
  }

  data(bytes: Buffer): void {
    if (this.#status !== 200) return this.#gather(bytes, errorBytesMax, () => this.ended())
    if (this.#form === "unknown") this.#form = this.#formOf(bytes)
    const tooLarge = (what: string) => () => this.#fail(`The model sent ${what} that is too large`)
    if (this.#form !== "events")
      return this.#gather(bytes, this.#ask.limits.upstreamAnswerBytes, tooLarge("an answer"))
    if (this.#first !== undefined) this.#timer.refresh()
    if (!this.#frames.push(bytes)) tooLarge("an event")()
  }

  /** A JSON object begins with a brace, which no line of an event stream does. */
  #formOf(bytes: Buffer): "unknown" | "events" | "whole" {
    const text = Buffer.concat([...this.#pieces, bytes]).toString("utf8")
    if (blank.test(text)) return "unknown"
    if (/^[\s\uFEFF]*\{/.test(text)) return "whole"
    for (const piece of this.#pieces) this.#frames.push(piece)
    this.#pieces = []
    return "events"
  }

  #gather(bytes: Buffer, bytesMax: number, tooMany: () => void): void {
    this.#bytes += bytes.length
    if (this.#bytes <= bytesMax) this.#pieces.push(bytes)
    else tooMany()
  }

  ended(): void {
    if (this.#isOver) return
    if (this.#status !== 200) return this.#failWith(failureOf(this.#status, this.#text(), this.#retryAfter))
    if (this.#form === "whole") return this.#takeWhole()
    // The blank line behind the last event may be missing. One that was cut itself says nothing.
    const last = Buffer.from(`${this.#frames.rest.toString("utf8").trimEnd()}\n\n`)
    if (isWhole(last)) this.#take(last)
    if (this.#isOver) return
    if (this.#first === undefined) return this.#fail("The model's answer was empty")
    // Some upstreams leave out [DONE]: a stream that said why it ended has ended well.
    if (this.#produced.hasFinished()) this.#end("finished")
    else this.#fail("The model's answer broke off")
  }

  #text(): string {
    return Buffer.concat(this.#pieces).toString("utf8")
  }

  /** What came in one piece is shown as a stream, unless it is an error. */
  #takeWhole(): void {
    const json = parseRecord(this.#text().replace(/^\uFEFF/, ""))
    if (json === undefined) return this.#fail("The model's answer was cut or is no JSON")
    for (const chunk of chunksOf(json)) this.#take(frameOf(chunk))
    if (this.#isOver) return
    if (this.#first === undefined) this.#fail("The model's answer was empty")
    else this.#end("finished")
  }

  failed(): void {
    if (this.#isOver) return
    // All was said: what is missing is the usage at most, and that can be counted.
    if (this.#first !== undefined && this.#produced.hasFinished(this.#ask.choices)) this.#end("finished")
    else this.#fail("The connection to the model broke")
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
    } else if (kind === "content" && this.#first !== undefined && this.#ask.choices === 1) this.#show(frame)
    else this.#read(frame)
  }

  /** An event whose JSON matters: before the first content all of them, afterwards those that are special. */
  #read(frame: Buffer): void {
    const data = dataOf(frame) ?? ""
    if (eventNameOf(frame) === "error")
      return this.#failWith(failureOfError(errorInEvent(data), this.#retryAfter))
    const chunk = readChunk(data)
    if (chunk === undefined) return this.#fail("The model's answer was cut or is no JSON")
    if (chunk.error !== undefined) return this.#failWith(failureOfError(chunk.error, this.#retryAfter))
    const cleaned = this.#withoutUsage(frame, chunk)
    if (cleaned === undefined) return
    if (this.#first !== undefined) return this.#show(cleaned, chunk)
    this.#held.push({ frame: Buffer.from(cleaned), chunk })
    if (chunk.hasContent) this.#begin(chunk.json)
  }

  /** Usage is told at the end, and the upstream's own cost nowhere; an event that carries nothing else goes no further. */
  #withoutUsage(frame: Buffer, chunk: ChatChunk): Buffer | undefined {
    const { usage, ...rest } = chunk.json
    const isTold = usage !== undefined && usage !== null
    if (isJsonRecord(usage)) this.#usage = usage
    if (isTold && !chunk.hasContent && chunk.finishReason === undefined) return undefined
    const cleaned = withoutCosts(isTold ? rest : chunk.json)
    return cleaned === chunk.json ? frame : frameOf(cleaned)
  }

  #begin(first: JsonRecord): void {
    this.#first = first
    this.#ask.onFirst(first)
    this.#firstTokenAt = Date.now()
    clearTimeout(this.#timer)
    const { streamSilenceMillis } = this.#ask.limits
    this.#timer = setTimeout(() => this.#silent(), streamSilenceMillis)
    for (const { chunk, frame } of this.#held) this.#show(frame, chunk)
    this.#held = []
  }

  /** @param chunk its JSON, where it was read */
  #show(frame: Buffer, chunk?: ChatChunk): void {
    const { hold, stream } = this.#ask
    this.#produced.add(frame)
    if (chunk !== undefined) this.#produced.read(chunk)
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
