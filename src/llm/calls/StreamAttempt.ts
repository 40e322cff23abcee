import { Effect } from "effect"
import type { UpstreamCall, UpstreamListener } from "#src/infra/upstream/Upstream.ts"
import { kindOf, dataOf, eventNameOf, frameOf, SseFrames } from "#streams/llm/SseFrames.ts"
import { type ChatChunk, errorInEvent, parseRecord, readChunk, chunksOf } from "#streams/llm/ChatChunk.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { withoutCosts } from "#streams/llm/UpstreamUsage.ts"
import { type AttemptFailure, failureOf, failureOfError, upstreamFailure } from "./AttemptFailure.ts"
import { StreamedOutput } from "./StreamedOutput.ts"
import { nothingSpent, type Spent } from "./Spent.ts"
import type { StreamAsk, Streamed, StreamOutcome } from "./StreamOutcome.ts"

/**
 * One try of one model for a stream. Events with content go to the client as they came, byte for byte, from the first
 * one on that says something; those with usage or an error are read. When its client goes away it is read on for a
 * little longer, because its usage comes last. Source: contract/llm#streams.
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

/** Unseen reasoning is estimated so often. */
const thoughtsEveryMillis = 1_000

/** An event that has come, and its JSON. */
interface Held {
  readonly frame: Buffer
  readonly chunk: ChatChunk
}

class StreamAttempt implements UpstreamListener {
  readonly #ask: StreamAsk
  readonly #done: (outcome: StreamOutcome) => void
  readonly #frames: SseFrames
  readonly #produced: StreamedOutput
  readonly #call: UpstreamCall
  readonly #stopListening: () => void
  #timer: NodeJS.Timeout
  #status = 0
  #retryAfter: string | undefined
  /** otherwise an error, an answer in one piece, or nothing yet that tells */
  #isEventStream = false
  readonly #unread = new BufferedAnswer()
  /** events before the first content: shown together with it */
  #held: Array<Held> = []
  #first: JsonRecord | undefined
  #usage: JsonRecord | undefined
  /** the last event with a reason for the end, if no content came before it */
  #ending: JsonRecord | undefined
  #isOver = false
  #isSlow = false
  readonly #unseen = new UnseenTime()
  readonly #thoughts: NodeJS.Timeout | undefined
  /** events that came while it is counted whether the hold is used up */
  #waiting: Array<Buffer> | undefined
  /** the end of the connection, if it came in the meantime */
  #afterwards: () => void = () => undefined

  constructor(ask: StreamAsk, done: (outcome: StreamOutcome) => void) {
    const { client, firstTokenMillis, limits, upstream } = ask
    this.#ask = ask
    this.#done = done
    this.#produced = new StreamedOutput(limits.producedBytes)
    this.#frames = new SseFrames(limits.upstreamAnswerBytes, (frame) => this.#take(frame))
    this.#stopListening = client.onGone(() => this.#left())
    if (ask.thinks && !ask.hold.isFixed)
      this.#thoughts = setInterval(() => this.#reckonThoughts(), thoughtsEveryMillis)
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
    if (this.#status !== 200) {
      if (!this.#unread.add(bytes, errorBytesMax)) this.ended()
      return
    }
    let piece = bytes
    if (!this.#isEventStream) {
      if (!this.#unread.add(bytes, this.#ask.limits.upstreamAnswerBytes))
        return this.#fail("The model sent an answer that is too large")
      if (this.#unread.form() !== "events") return
      this.#isEventStream = true
      piece = this.#unread.bytes()
    }
    if (this.#first !== undefined && !this.#hasLeft) this.#timer.refresh()
    if (!this.#frames.push(piece)) this.#fail("The model sent an event that is too large")
  }

  ended(): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return this.#postpone(() => this.ended())
    if (this.#status !== 200)
      return this.#failWith(failureOf(this.#status, this.#unread.text(), this.#retryAfter))
    if (!this.#isEventStream && this.#unread.form() === "whole") return this.#takeWhole()
    // The blank line after the last event may be missing. An event that was cut itself is ignored.
    const last = Buffer.from(`${this.#frames.rest.toString("utf8").trimEnd()}\n\n`)
    if (isWhole(last)) this.#take(last)
    if (this.#isOver) return
    // Some upstreams leave out [DONE]: a stream with a finish reason has ended well.
    if (this.#first === undefined || this.#produced.hasFinished()) this.#conclude()
    else this.#fail("The model's answer broke off")
  }

  /** An answer in one piece is shown as a stream, unless it is an error. */
  #takeWhole(): void {
    const json = parseRecord(this.#unread.text().replace(/^\uFEFF/, ""))
    if (json === undefined) return this.#fail("The model's answer was cut or is no JSON")
    for (const chunk of chunksOf(json)) this.#take(frameOf(chunk))
    if (this.#isOver) return
    if (this.#waiting === undefined) this.#conclude()
    else this.#postpone(() => this.#conclude())
  }

  failed(): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return this.#postpone(() => this.failed())
    // All content came: only the usage may be missing, and it can be counted.
    const hasSaidAll = this.#first !== undefined && this.#produced.hasFinished(this.#ask.choices)
    if (this.#ending !== undefined || hasSaidAll) this.#conclude()
    else this.#fail("The connection to the model broke")
  }

  /** Releases everything without an outcome. */
  dispose(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    clearInterval(this.#thoughts)
    this.#stopListening()
    this.#call.abort()
  }

  /** The cost of the call comes with its end, so the end is waited for although the client is gone. */
  #left(): void {
    this.#unseen.leftAt = Date.now()
    clearTimeout(this.#timer)
    if (!this.#call.isSent || this.#isTold) return this.#end("gone")
    this.#timer = setTimeout(() => this.#end("gone"), this.#ask.limits.usageWaitMillis)
    if (this.#isSlow) this.#call.resume()
  }

  /** Usage may come with every event; only the last one is complete. */
  get #isTold(): boolean {
    return this.#usage !== undefined && (this.#ending ?? this.#produced.finishReason) !== undefined
  }

  /** All came; if that was a finish reason alone, it is the answer. */
  #conclude(): void {
    if (this.#first === undefined && this.#ending !== undefined) this.#begin(this.#ending)
    if (this.#first === undefined) this.#fail("The model's answer was empty")
    else this.#end("finished")
  }

  #postpone(event: () => void): void {
    this.#afterwards = event
  }

  /** By an estimate the output is more than is paid: nothing more is shown until it was counted. */
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

  /** Tokens that the model is assumed to have thought before its first content. */
  get #thought(): number {
    const { hold, limits, thinks } = this.#ask
    if (!thinks || hold.isFixed) return 0
    return Math.floor((this.#unseen.millis / 1_000) * limits.hiddenTokensPerSecond)
  }

  get #hasLeft(): boolean {
    return this.#unseen.leftAt !== 0
  }

  #reckonThoughts(): void {
    if (this.#hasLeft || !this.#ask.hold.isUsedUp(this.#produced.tokens + this.#thought)) return
    this.#first ??= {}
    this.#end("cut")
  }

  /** @param isTaken it is at work, or was, unless it refused */
  #spent(isTaken = this.#call.isSent && (this.#status === 0 || this.#status === 200)): Spent {
    return {
      usage: this.#usage,
      output: () => this.#produced.text(),
      unseenMillis: this.#unseen.millis,
      isTaken
    }
  }

  #take(frame: Buffer): void {
    if (this.#isOver) return
    if (this.#waiting !== undefined) return void this.#waiting.push(Buffer.from(frame))
    const kind = kindOf(frame)
    if (kind === "comment") return
    if (kind === "done") this.#conclude()
    else if (kind === "content" && this.#first !== undefined && this.#ask.choices === 1) this.#show(frame)
    else this.#read(frame)
  }

  /** An event whose JSON matters: before the first content all of them, afterwards the special ones. */
  #read(frame: Buffer): void {
    const data = dataOf(frame) ?? ""
    const isNamedError = eventNameOf(frame) === "error"
    const chunk = isNamedError ? undefined : readChunk(data)
    if (chunk === undefined && !isNamedError) return this.#fail("The model's answer was cut or is no JSON")
    const error = chunk === undefined ? errorInEvent(data) : chunk.error
    // An upstream that fails before any other output has done no work.
    if (error !== undefined)
      return this.#failWith(failureOfError(error, this.#retryAfter), this.#first !== undefined)
    if (chunk !== undefined) this.#takeChunk(frame, chunk)
  }

  #takeChunk(frame: Buffer, chunk: ChatChunk): void {
    if (this.#first === undefined && chunk.finishReason !== undefined) this.#ending = chunk.json
    const cleaned = this.#withoutUsage(frame, chunk)
    if (cleaned !== undefined) {
      if (this.#first !== undefined) this.#show(cleaned, chunk)
      else {
        this.#held.push({ frame: Buffer.from(cleaned), chunk })
        if (chunk.hasContent) this.#begin(chunk.json)
      }
    }
    if (this.#hasLeft && this.#isTold) this.#end("gone")
  }

  /** Usage is sent at the end, the upstream's own cost never; an event that carries nothing else goes no further. */
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
    this.#unseen.firstTokenAt = Date.now()
    if (!this.#hasLeft) {
      this.#ask.onFirst(first)
      clearTimeout(this.#timer)
      const { streamSilenceMillis } = this.#ask.limits
      this.#timer = setTimeout(() => this.#silent(), streamSilenceMillis)
    }
    for (const { chunk, frame } of this.#held) this.#show(frame, chunk)
    this.#held = []
  }

  /** @param chunk its JSON, where it was read */
  #show(frame: Buffer, chunk?: ChatChunk): void {
    const { hold, stream } = this.#ask
    this.#produced.add(frame)
    if (chunk !== undefined) this.#produced.read(chunk)
    if (this.#hasLeft) return
    const isTaken = stream.write(frame)
    if (!isTaken) {
      this.#isSlow = true
      this.#call.pause()
    }
    // The output that fills the hold is shown still: it is paid.
    if (!hold.isUsedUp(this.#produced.tokens + this.#thought)) return
    if (hold.isFixed) this.#countSaid()
    else this.#end("cut")
  }

  /** The client has taken the waiting bytes. */
  #goOn(): void {
    if (!this.#isSlow || this.#isOver) return
    this.#isSlow = false
    this.#timer.refresh()
    if (this.#waiting === undefined) this.#call.resume()
  }

  #silent(): void {
    // The client is slow then, and the front handles that.
    if (this.#isSlow) return void this.#timer.refresh()
    this.#fail(`The model was silent for ${this.#ask.limits.streamSilenceMillis / 1_000} s`)
  }

  #fail(message: string): void {
    this.#failWith(upstreamFailure(message))
  }

  #failWith(failure: AttemptFailure, isTaken?: boolean): void {
    if (this.#hasLeft) return this.#end("gone")
    if (this.#first !== undefined) return this.#end("failed", failure)
    this.#finish({ _tag: "Failed", failure, spent: this.#spent(isTaken) })
  }

  #end(end: Streamed["end"], failure?: AttemptFailure): void {
    const first = this.#first
    const spent = this.#spent()
    if (first === undefined) return this.#finish({ _tag: "ClientGone", spent })
    this.#finish({
      _tag: "Streamed",
      streamed: {
        end,
        failure,
        first,
        spent,
        produced: this.#produced,
        firstTokenAt: this.#unseen.firstTokenAt
      }
    })
  }

  #finish(outcome: StreamOutcome): void {
    if (this.#isOver) return
    this.dispose()
    this.#done(outcome)
  }
}

/** Bytes of an answer that are not shown as they come: an error, a whole answer, or the beginning of a stream. */
class BufferedAnswer {
  readonly #pieces: Array<Buffer> = []
  #bytes = 0
  #form: "unknown" | "events" | "whole" = "unknown"

  /** false: they are more than so many */
  add(bytes: Buffer, bytesMax: number): boolean {
    this.#bytes += bytes.length
    if (this.#bytes > bytesMax) return false
    this.#pieces.push(bytes)
    return true
  }

  bytes(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  text(): string {
    return this.bytes().toString("utf8")
  }

  /** A JSON object begins with a brace, which no line of an event stream does. */
  form(): "unknown" | "events" | "whole" {
    if (this.#form !== "unknown") return this.#form
    // The first bytes that are more than blanks and a byte order mark decide.
    const text = this.text()
    if (!/^[\s\uFEFF]*$/.test(text)) this.#form = /^[\s\uFEFF]*\{/.test(text) ? "whole" : "events"
    return this.#form
  }
}

/** The time that a model may have been thinking without visible output. */
class UnseenTime {
  readonly #askedAt = Date.now()
  /** epoch milliseconds of the first content; 0: none yet */
  firstTokenAt = 0
  /** epoch milliseconds at which the client went away; 0: it is there */
  leftAt = 0

  /** until the first content, or until the client left where there was none */
  get millis(): number {
    return Math.max(0, (this.firstTokenAt || this.leftAt || Date.now()) - this.#askedAt)
  }
}
