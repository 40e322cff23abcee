import { Effect } from "effect"
import { type ChatChunk, chunkOf, textOf, parseRecord } from "#streams/llm/ChatChunk.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { Limits } from "#src/Limits.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { Upstream, UpstreamCall, UpstreamListener } from "#src/infra/upstream/Upstream.ts"
import { type AttemptFailure, failureOf, failureOfError, upstreamFailure } from "./AttemptFailure.ts"
import type { Client } from "./ClientStream.ts"
import { nothingSpent, type Spent } from "./Spent.ts"

export type PlainOutcome =
  | { readonly _tag: "Answered"; readonly json: JsonRecord }
  | { readonly _tag: "Failed"; readonly failure: AttemptFailure; readonly spent: Spent }
  | { readonly _tag: "ClientGone"; readonly spent: Spent }

export interface PlainAsk {
  readonly upstream: Upstream["Service"]
  readonly path: string
  readonly body: OutgoingBody
  readonly client: Client
  readonly limits: Limits
  /** the fault of an answer that is JSON; undefined for a good one */
  readonly problemOf: (answer: ChatChunk) => string | undefined
}

/**
 * One try of one model for an answer in one piece. After its client has left it is waited for a little longer, because
 * the answer has its cost; then the call to the upstream ends.
 */
export const plainAttempt = (ask: PlainAsk): Effect.Effect<PlainOutcome> =>
  Effect.callback((resume) => {
    const attempt = attemptPlain(ask, (outcome) => resume(Effect.succeed(outcome)))
    return Effect.sync(() => attempt?.dispose())
  })

/** The same without a fiber. Undefined: `done` has received the outcome. */
export const attemptPlain = (
  ask: PlainAsk,
  done: (outcome: PlainOutcome) => void
): PlainAttempt | undefined => {
  if (!ask.client.isGone) return new PlainAttempt(ask, done)
  done({ _tag: "ClientGone", spent: nothingSpent })
  return undefined
}

export class PlainAttempt implements UpstreamListener {
  readonly #ask: PlainAsk
  readonly #done: (outcome: PlainOutcome) => void
  readonly #call: UpstreamCall
  readonly #stopListening: () => void
  readonly #askedAt = Date.now()
  readonly #pieces: Array<Buffer> = []
  #bytes = 0
  #status = 0
  #retryAfter: string | undefined
  #leftAt: number | undefined
  #deadline: NodeJS.Timeout

  constructor(ask: PlainAsk, done: (outcome: PlainOutcome) => void) {
    this.#ask = ask
    this.#done = done
    const { plainAnswerMillis } = ask.limits
    this.#stopListening = ask.client.onGone(() => this.#left())
    this.#deadline = setTimeout(
      () => this.#fail(`The model did not answer within ${plainAnswerMillis / 1_000} s`, this.#call.isSent),
      plainAnswerMillis
    )
    this.#call = ask.upstream.post(ask.path, ask.body, this)
  }

  head(status: number, header: (name: string) => string | undefined): void {
    this.#status = status
    this.#retryAfter = header("retry-after")
  }

  data(piece: Buffer): void {
    const { upstreamAnswerBytes } = this.#ask.limits
    this.#bytes += piece.length
    if (this.#bytes > upstreamAnswerBytes)
      return this.#fail(`The model answered more than ${upstreamAnswerBytes} bytes`, this.#status === 200)
    this.#pieces.push(piece)
  }

  ended(): void {
    this.#end(
      outcomeOf({
        status: this.#status,
        text: joined(this.#pieces),
        retryAfter: this.#retryAfter,
        problemOf: this.#ask.problemOf,
        worked: (isTaken) => this.#worked(isTaken)
      })
    )
  }

  failed(): void {
    this.#fail("The connection to the model broke", this.#status === 200)
  }

  /** Releases everything without an outcome. */
  dispose(): void {
    clearTimeout(this.#deadline)
    this.#stopListening()
    this.#call.abort()
  }

  #left(): void {
    this.#leftAt = Date.now()
    clearTimeout(this.#deadline)
    if (!this.#call.isSent) return this.#end({ _tag: "ClientGone", spent: nothingSpent })
    const isTaken = () => this.#status === 0 || this.#status === 200
    this.#deadline = setTimeout(
      () => this.#end({ _tag: "ClientGone", spent: this.#worked(isTaken()) }),
      this.#ask.limits.usageWaitMillis
    )
  }

  /** The model was at work on it, until its client left at the latest. */
  #worked(isTaken: boolean): Spent {
    return { ...nothingSpent, unseenMillis: (this.#leftAt ?? Date.now()) - this.#askedAt, isTaken }
  }

  #fail(problem: string, isTaken: boolean): void {
    this.#end({ _tag: "Failed", failure: upstreamFailure(problem), spent: this.#worked(isTaken) })
  }

  #end(outcome: PlainOutcome): void {
    this.dispose()
    this.#done(this.#leftAt === undefined ? outcome : leftOutcome(outcome))
  }
}

/** Only the cost that the answer reports still matters. */
const leftOutcome = (outcome: PlainOutcome): PlainOutcome =>
  outcome._tag === "Answered"
    ? { _tag: "ClientGone", spent: spentOn(outcome.json) }
    : { _tag: "ClientGone", spent: outcome.spent }

const spentOn = (json: JsonRecord): Spent => ({
  usage: json["usage"],
  output: () => ({ text: textOf(json), factor: 1 }),
  unseenMillis: 0,
  isTaken: true
})

const joined = (pieces: ReadonlyArray<Buffer>): string =>
  (pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces)).toString("utf8")

interface Came extends Pick<PlainAsk, "problemOf"> {
  readonly status: number
  readonly text: string
  readonly retryAfter: string | undefined
  readonly worked: (isTaken: boolean) => Spent
}

const outcomeOf = ({ problemOf, retryAfter, status, text, worked }: Came): PlainOutcome => {
  const json = parseRecord(text)
  // Errors may have a cost, too.
  const spent: Spent = { ...nothingSpent, usage: json?.["usage"] }
  if (status !== 200) return { _tag: "Failed", failure: failureOf(status, text, retryAfter), spent }
  if (json === undefined) {
    const failure = upstreamFailure("The model's answer was cut or is no JSON")
    return { _tag: "Failed", failure, spent: worked(true) }
  }
  // Some upstreams answer 200 with an error in it.
  const answer = chunkOf(json)
  if (answer.error !== undefined)
    return { _tag: "Failed", failure: failureOfError(answer.error, retryAfter), spent }
  const problem = problemOf(answer)
  return problem === undefined
    ? { _tag: "Answered", json }
    : { _tag: "Failed", failure: upstreamFailure(problem), spent }
}
