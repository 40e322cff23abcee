import { Effect } from "effect"
import type { UpstreamCall, UpstreamListener } from "#src/infra/upstream/Upstream.ts"
import { kindOf } from "#streams/llm/ChunkScan.ts"
import { type ChatChunk, readChunk } from "#streams/llm/ChatChunk.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { dataOf, SseFrames } from "#streams/llm/SseFrames.ts"
import { type AttemptFailure, failureOf, failureOfStatus, upstreamFailure } from "./AttemptFailure.ts"
import { Produced } from "./Produced.ts"
import { nothingSpent, type Spent } from "./Spent.ts"
import type { StreamAsk, Streamed, StreamOutcome } from "./StreamOutcome.ts"

/**
 * One try of one model for a stream. Events with content go to the client as they came, byte for byte, from the first
 * one on that says something; those with usage or an error are read. When its client goes away it is read on for a
 * little longer, because its usage comes last. Source: decisions, LLM (Streams).
 */
export const streamAttempt = (ask: StreamAsk): Effect.Effect<StreamOutcome> =>
  Effect.callback((resume) => {
    if (ask.client.isGone) return resume(Effect.succeed({ _tag: "ClientGone", spent: nothingSpent }))
    const attempt = new StreamAttempt(ask, (outcome) => resume(Effect.succeed(outcome)))
    return Effect.sync(() => attempt.dispose())
  })

const isWhole = (frame: Buffer): boolean =>
  kindOf(frame) === "done" || readChunk(dataOf(frame) ?? "") !== undefined

/** Bytes of an error's body that are read. */
const errorBytesMax = 64 * 1024

/** What is thought unseen is reckoned so often. */
const thoughtsEveryMillis = 1_000

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
  /** the last event that said why the answer ends, where nothing was said before it */
  #ending: JsonRecord | undefined
  #isOver = false
  #isSlow = false
  readonly #askedAt = Date.now()
  /** epoch milliseconds at which the client went away; 0: it is there */
  #leftAt = 0
  readonly #thoughts: NodeJS.Timeout | undefined
  /** events that came while it is counted whether the hold is used up */
  #waiting: Array<Buffer> | undefined
  /** what the connection did meanwhile */
  #afterwards: () => void = () => undefined

  constructor(ask: StreamAsk, done: (outcome: StreamOutcome) => void) {
    const { client, limits, upstream } = ask
    this.#ask = ask
    this.#done = done
    this.#produced = new Produced(limits.producedBytes)
    this.#frames = new SseFrames(limits.upstreamAnswerBytes, (frame) => this.#take(frame))
    this.#stopListening = client.onGone(() => this.#left())
    if (ask.thinks && !ask.hold.isFixed)
      this.#thoughts = setInterval(() => this.#reckonThoughts(), thoughtsEveryMillis)
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
    if (this.#first !== undefined && this.#leftAt === 0) this.#timer.refresh()
    if (!this.#frames.push(bytes)) this.#fail("The model sent an event that is too large")
  }

  ended(): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return this.#postpone(() => this.ended())
    if (this.#status !== 200) {
      const body = Buffer.concat(this.#errorPieces).toString("utf8")
      return this.#failWith(failureOf(this.#status, body, this.#retryAfter))
    }
    // The blank line behind the last event may be missing. One that was cut itself says nothing.
    const last = Buffer.from(`${this.#frames.rest.toString("utf8").trimEnd()}\n\n`)
    if (isWhole(last)) this.#take(last)
    if (this.#isOver) return
    // Some upstreams leave out [DONE]: a stream that said why it ended has ended well.
    if (this.#first === undefined || this.#produced.finishReason !== undefined) this.#conclude()
    else this.#fail("The model's answer broke off")
  }

  failed(): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return this.#postpone(() => this.failed())
    // All was said: what is missing is the usage at most, and that can be counted.
    if (
      this.#ending !== undefined ||
      (this.#first !== undefined && this.#produced.finishReason !== undefined)
    )
      return this.#conclude()
    this.#fail("The connection to the model broke")
  }

  /** Lets go of everything without an outcome. */
  dispose(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    clearInterval(this.#thoughts)
    this.#stopListening()
    this.#call.abort()
  }

  /** What the call has cost comes with its end: nobody hears it any more, but it is waited for. */
  #left(): void {
    this.#leftAt = Date.now()
    clearTimeout(this.#timer)
    if (!this.#call.isSent || this.#isTold) return this.#end("gone")
    this.#timer = setTimeout(() => this.#end("gone"), this.#ask.limits.usageWaitMillis)
    if (this.#isSlow) this.#call.resume()
  }

  /** Usage may come with every event; only what comes at the end is all of it. */
  get #isTold(): boolean {
    return this.#usage !== undefined && (this.#ending ?? this.#produced.finishReason) !== undefined
  }

  /** All came; where that was nothing but a reason for it, that is the answer. */
  #conclude(): void {
    if (this.#first === undefined && this.#ending !== undefined) this.#begin(this.#ending)
    if (this.#first === undefined) this.#fail("The model's answer was empty")
    else this.#end("finished")
  }

  #postpone(event: () => void): void {
    this.#afterwards = event
  }

  /** By a guess it has said more than is paid: nothing more is shown until it was counted. */
  #countSaid(): void {
    this.#waiting = []
    this.#call.pause()
    const { factor, text } = this.#produced.text()
    void this.#ask.count(text).then((tokens) => this.#goOnFrom(Math.ceil(tokens * factor)))
  }

  #goOnFrom(tokens: number): void {
    if (this.#isOver) return
    this.#produced.counted(tokens)
    if (this.#ask.hold.isUsedUp(tokens)) return this.#end("cut")
    const frames = this.#waiting ?? []
    this.#waiting = undefined
    for (const frame of frames) this.#take(frame)
    if (this.#isOver || this.#waiting !== undefined) return
    if (!this.#isSlow) this.#call.resume()
    this.#afterwards()
  }

  /** Tokens that it is taken to have thought before it said anything. */
  get #thought(): number {
    const { hold, limits, thinks } = this.#ask
    if (!thinks || hold.isFixed) return 0
    return Math.floor((this.#unseenMillis / 1_000) * limits.hiddenTokensPerSecond)
  }

  get #unseenMillis(): number {
    const until = this.#firstTokenAt || this.#leftAt || Date.now()
    return Math.max(0, until - this.#askedAt)
  }

  #reckonThoughts(): void {
    if (this.#leftAt !== 0 || !this.#ask.hold.isUsedUp(this.#produced.tokens + this.#thought)) return
    this.#first ??= {}
    this.#end("cut")
  }

  #spent(isTaken: boolean): Spent {
    return {
      usage: this.#usage,
      output: () => this.#produced.text(),
      unseenMillis: this.#unseenMillis,
      isTaken
    }
  }

  #take(frame: Buffer): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return void this.#waiting.push(Buffer.from(frame))
    const kind = kindOf(frame)
    if (kind === "comment") return
    if (kind === "done") this.#conclude()
    else if (kind === "content" && this.#first !== undefined) this.#show(frame)
    else this.#read(frame)
  }

  /** An event whose JSON matters: before the first content all of them, afterwards those that are special. */
  #read(frame: Buffer): void {
    const chunk = readChunk(dataOf(frame) ?? "")
    if (chunk === undefined) return this.#fail("The model's answer was cut or is no JSON")
    if (chunk.error !== undefined) {
      const { message, status } = chunk.error
      // Who says that it failed before it said anything else has done no work.
      const isTaken = this.#first !== undefined
      return this.#failWith(failureOfStatus(status ?? 502, message, null, undefined), isTaken)
    }
    const { usage } = chunk.json
    if (this.#first === undefined && chunk.finishReason !== undefined) this.#ending = chunk.json
    const cleaned = usage === undefined || usage === null ? frame : this.#withoutUsage(chunk, usage)
    if (cleaned !== undefined) {
      if (this.#first !== undefined) this.#show(cleaned)
      else {
        this.#held.push(Buffer.from(cleaned))
        if (chunk.hasContent) this.#begin(chunk.json)
      }
    }
    if (this.#leftAt !== 0 && this.#isTold) this.#end("gone")
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
    if (this.#leftAt === 0) {
      clearTimeout(this.#timer)
      const { streamSilenceMillis } = this.#ask.limits
      this.#timer = setTimeout(() => this.#silent(), streamSilenceMillis)
    }
    for (const frame of this.#held) this.#show(frame)
    this.#held = []
  }

  #show(frame: Buffer): void {
    const { hold, stream } = this.#ask
    this.#produced.add(frame)
    if (this.#leftAt !== 0) return
    const isTaken = stream.write(frame)
    if (!isTaken) {
      this.#isSlow = true
      this.#call.pause()
    }
    // What fills the hold is shown still: it is paid.
    if (!hold.isUsedUp(this.#produced.tokens + this.#thought)) return
    if (hold.isFixed) this.#countSaid()
    else this.#end("cut")
  }

  /** The client has taken what there was. */
  #goOn(): void {
    if (!this.#isSlow || this.#isOver) return
    this.#isSlow = false
    this.#timer.refresh()
    if (this.#waiting === undefined) this.#call.resume()
  }

  #silent(): void {
    // It is the client that is slow then, and the front that looks after it.
    if (this.#isSlow) return void this.#timer.refresh()
    this.#fail(`The model was silent for ${this.#ask.limits.streamSilenceMillis / 1_000} s`)
  }

  #fail(message: string): void {
    this.#failWith(upstreamFailure(message))
  }

  #failWith(failure: AttemptFailure, isTaken = this.#isTaken): void {
    if (this.#leftAt !== 0) return this.#end("gone")
    if (this.#first !== undefined) return this.#end("failed", failure)
    this.#finish({ _tag: "Failed", failure, spent: this.#spent(isTaken) })
  }

  /** It is at work, or was, unless it refused. */
  get #isTaken(): boolean {
    return this.#call.isSent && (this.#status === 0 || this.#status === 200)
  }

  #end(end: Streamed["end"], failure?: AttemptFailure): void {
    const first = this.#first
    const spent = this.#spent(this.#isTaken)
    if (first === undefined) return this.#finish({ _tag: "ClientGone", spent })
    this.#finish({
      _tag: "Streamed",
      streamed: {
        end,
        failure,
        first,
        spent,
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
