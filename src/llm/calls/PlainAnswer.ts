import { Effect } from "effect"
import { chunkOf, textOf, parseRecord } from "#streams/llm/ChatChunk.ts"
import { withoutCosts } from "#streams/llm/UpstreamUsage.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { Call, CallParts } from "./CallParts.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { traceAttempt } from "./CallTrace.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { routerBlock } from "./CallTally.ts"
import { settle } from "./Settling.ts"
import { addFailed, addLeft, nothingSpent, type Spent } from "./Spent.ts"
import { faultOf, type Tried, tryInOrder } from "./Failover.ts"
import type { Limits } from "#src/Limits.ts"
import type { Upstream, UpstreamCall, UpstreamListener } from "#src/infra/upstream/Upstream.ts"
import { type AttemptFailure, failureOf, failureOfError, upstreamFailure } from "./AttemptFailure.ts"
import type { Client } from "./ClientStream.ts"

/** The fault of a completion that came whole. */
const problemOf = (json: JsonRecord): string | undefined => {
  const { finishReason, hasContent } = chunkOf(json)
  // A finish reason alone makes an empty answer valid.
  return hasContent || finishReason !== undefined ? undefined : "The model's answer was empty"
}

/** Asks one model for an answer in one piece. */
export const askPlain = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Pick<Call, "client" | "request" | "tally">,
  model: CatalogueModel,
  body: OutgoingBody,
  images: number
): Effect.fn.Return<Tried<JsonRecord>> {
  const { limits, upstream } = parts
  call.tally.attempts++
  const { client } = call
  const attempt = plainAttempt({ upstream, path: "/chat/completions", body, client, limits, problemOf })
  const outcome = yield* traceAttempt(parts, "chat", model, attempt)
  if (outcome._tag === "Answered") return { _tag: "Done", value: outcome.json, health: "succeeded" }
  if (outcome._tag === "ClientGone") yield* addLeft(parts, call, model, outcome.spent, images)
  else {
    call.tally.told(model, outcome.failure)
    addFailed(parts, call, model, outcome.spent, images)
  }
  return outcome
})

/** Settles a call whose client left before there was an answer. */
export const settleLeft = Effect.fnUntraced(function* ({ log }: CallParts, call: Call) {
  const { admission, ask, client, tally } = call
  // It went because this platform ended it: then the platform pays.
  if (client.isAbandoned) return log.append(tally.clientGone())
  log.append(tally.clientGone(yield* settle(admission, ask, { cost: tally.cost, tokens: tally.tokens })))
})

/** Adds a model's whole answer to the call. */
export const addAnswer = Effect.fnUntraced(function* (
  parts: CallParts,
  { request, tally }: Pick<Call, "request" | "tally">,
  model: CatalogueModel,
  json: JsonRecord,
  images: number
) {
  const measured = yield* usageOf(parts, request, model, json["usage"], () => ({
    text: textOf(json),
    factor: 1
  }))
  tally.add(model, measured, images)
})

/** The last stage of a plain call: the client gets the answer of the first model that has one. */
export const answerPlain = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Call,
  bodyOf: (model: CatalogueModel) => OutgoingBody,
  images: number
): Effect.fn.Return<Problem | undefined> {
  const { admission, sink, tally, candidates } = call
  const result = yield* tryInOrder(candidates.primary, call.route, (model) =>
    askPlain(parts, call, model, bodyOf(model), images)
  )
  if (result._tag === "ClientGone") return void (yield* settleLeft(parts, call))
  if (result._tag === "AllFailed") {
    const fault = faultOf(result.failures)
    parts.log.append(tally.refused(fault))
    return fault
  }
  const { model, value: json } = result
  yield* addAnswer(parts, call, model, json, images)
  const settlement = yield* settle(admission, call.ask, { cost: tally.cost, tokens: tally.tokens })
  parts.log.append(tally.answered(settlement))
  sink.json({
    ...withoutCosts(json),
    id: typeof json["id"] === "string" ? json["id"] : tally.head.id,
    object: "chat.completion",
    model: model.id,
    usage: usageObject(tally, json["usage"]),
    router: routerBlock(call, settlement, admission.clamped && chunkOf(json).finishReason === "length")
  })
  return undefined
})

type PlainOutcome =
  | { readonly _tag: "Answered"; readonly json: JsonRecord }
  | { readonly _tag: "Failed"; readonly failure: AttemptFailure; readonly spent: Spent }
  | { readonly _tag: "ClientGone"; readonly spent: Spent }

interface PlainAsk {
  readonly upstream: Upstream["Service"]
  readonly path: string
  readonly body: OutgoingBody
  readonly client: Client
  readonly limits: Limits
  /** the fault of an answer that is JSON; undefined for a good one */
  readonly problemOf: (json: JsonRecord) => string | undefined
}

/**
 * One try of one model for an answer in one piece. After its client has left it is waited for a little longer, because
 * the answer has its cost; then the call to the upstream ends.
 */
export const plainAttempt = (ask: PlainAsk): Effect.Effect<PlainOutcome> =>
  Effect.callback((resume) => {
    if (ask.client.isGone) return resume(Effect.succeed({ _tag: "ClientGone", spent: nothingSpent }))
    const attempt = new PlainAttempt(ask, (outcome) => resume(Effect.succeed(outcome)))
    return Effect.sync(() => attempt.dispose())
  })

class PlainAttempt implements UpstreamListener {
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
  const { error } = chunkOf(json)
  if (error !== undefined) return { _tag: "Failed", failure: failureOfError(error, retryAfter), spent }
  const problem = problemOf(json)
  return problem === undefined
    ? { _tag: "Answered", json }
    : { _tag: "Failed", failure: upstreamFailure(problem), spent }
}
