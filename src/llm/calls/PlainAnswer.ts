import { Cause, type Context, Effect } from "effect"
import { type ChatChunk, chunkOf, textOf } from "#streams/llm/ChatChunk.ts"
import { withoutCosts } from "#streams/llm/UpstreamUsage.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import type { Settlement } from "#streams/llm/CallRecord.ts"
import type { OutgoingBody } from "#src/infra/upstream/OutgoingBody.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { Call, CallParts, LastStage } from "./CallParts.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { traceAttempt } from "./CallTrace.ts"
import { usageObject, usageOf } from "./CountedUsage.ts"
import { type Measured, routerBlock } from "./CallTally.ts"
import {
  attemptPlain,
  type PlainAsk,
  plainAttempt,
  type PlainAttempt,
  type PlainOutcome
} from "./PlainAttempt.ts"
import { settle } from "./Settling.ts"
import { awaited, type Soon } from "./Soon.ts"
import { addFailed, addLeft } from "./Spent.ts"
import { faultOf, StageWalk, type Tried } from "./Failover.ts"

/** The fault of a completion that came whole. */
const problemOf = ({ finishReason, hasContent }: ChatChunk): string | undefined =>
  // A finish reason alone makes an empty answer valid.
  hasContent || finishReason !== undefined ? undefined : "The model's answer was empty"

type Asked = Pick<Call, "client" | "request" | "tally">

const askOf = ({ limits, upstream }: CallParts, { client }: Asked, body: OutgoingBody): PlainAsk => ({
  upstream,
  path: "/chat/completions",
  body,
  client,
  limits,
  problemOf
})

/** A try that failed, for the log and at its cost. */
const addFailure = (
  parts: CallParts,
  call: Asked,
  model: CatalogueModel,
  { failure, spent }: Extract<PlainOutcome, { readonly _tag: "Failed" }>,
  images: number
): void => {
  call.tally.told(model, failure)
  addFailed(parts, call, model, spent, images)
}

/** Asks one model for an answer in one piece. */
export const askPlain = Effect.fnUntraced(function* (
  parts: CallParts,
  call: Asked,
  model: CatalogueModel,
  body: OutgoingBody,
  images: number
): Effect.fn.Return<Tried<JsonRecord>> {
  call.tally.attempts++
  const outcome = yield* traceAttempt(parts, "chat", model, plainAttempt(askOf(parts, call, body)))
  if (outcome._tag === "Answered") return { _tag: "Done", value: outcome.json, health: "succeeded" }
  if (outcome._tag === "ClientGone") yield* addLeft(parts, call, model, outcome.spent, images)
  else addFailure(parts, call, model, outcome, images)
  return outcome
})

/** Settles a call whose client left before there was an answer. */
export const settleLeft = Effect.fnUntraced(function* ({ log }: CallParts, call: Call) {
  const { admission, ask, client, tally } = call
  // It went because this platform ended it: then the platform pays.
  if (client.isAbandoned) return log.append(tally.clientGone())
  const actual = { cost: tally.cost, tokens: tally.tokens }
  log.append(tally.clientGone(yield* awaited(settle(admission, ask, actual))))
})

/** The usage of a model's whole answer. */
export const measure = (
  parts: CallParts,
  { request }: Pick<Call, "request">,
  model: CatalogueModel,
  json: JsonRecord
): Soon<Measured> => usageOf(parts, request, model, json["usage"], () => ({ text: textOf(json), factor: 1 }))

/** The outcome of a plain call: one of `over` and `died` is called, once. */
export interface PlainEnd {
  /** The fault to answer with; undefined where the sink has been given the answer, or its client has gone. */
  readonly over: (fault: Problem | undefined) => void
  /** A fault of this server itself. */
  readonly died: (defect: unknown) => void
  /** Runs in a fiber what has to be waited for. */
  readonly run: (effect: Effect.Effect<void>) => unknown
}

/**
 * The last stage of a plain call, driven by callbacks: the client gets the answer of the first model that has one, in the
 * turn in which it is complete. A fiber takes only what has to be waited for: a client that left, tokens that have to be
 * counted, a hold that is too small, spans. Its cost: 0012.
 */
export class PlainCall {
  readonly #parts: CallParts
  readonly #call: Call
  readonly #stage: LastStage
  readonly #end: PlainEnd
  readonly #walk: StageWalk
  #attempt: PlainAttempt | undefined
  #isOver = false

  constructor(parts: CallParts, call: Call, stage: LastStage, end: PlainEnd) {
    this.#parts = parts
    this.#call = call
    this.#stage = stage
    this.#end = end
    this.#walk = new StageWalk(call.candidates.primary, call.route)
  }

  begin(): void {
    this.#safely(() => this.#askNext())
  }

  /** Ends without an outcome. */
  dispose(): void {
    this.#isOver = true
    this.#attempt?.dispose()
  }

  #askNext(): void {
    const model = this.#walk.next()
    if (model === undefined) return this.#refuse()
    this.#call.tally.attempts++
    const ask = askOf(this.#parts, this.#call, this.#stage.bodyOf(model))
    const done = (outcome: PlainOutcome) => this.#safely(() => this.#tried(model, outcome))
    if (this.#parts.isTraced)
      this.#run(Effect.map(traceAttempt(this.#parts, "chat", model, plainAttempt(ask)), done))
    else this.#attempt = attemptPlain(ask, done)
  }

  #tried(model: CatalogueModel, outcome: PlainOutcome): void {
    if (outcome._tag === "Answered") {
      this.#walk.tried(model, answered)
      return this.#settle(model, outcome.json)
    }
    this.#walk.tried(model, outcome)
    if (outcome._tag === "ClientGone") return this.#leave(model, outcome)
    addFailure(this.#parts, this.#call, model, outcome, this.#stage.images)
    this.#askNext()
  }

  #leave(model: CatalogueModel, { spent }: Extract<PlainOutcome, { readonly _tag: "ClientGone" }>): void {
    const left = addLeft(this.#parts, this.#call, model, spent, this.#stage.images)
    this.#run(
      Effect.map(Effect.andThen(left, settleLeft(this.#parts, this.#call)), () => this.#finish(undefined))
    )
  }

  #refuse(): void {
    const fault = faultOf(this.#walk.failures)
    this.#parts.log.append(this.#call.tally.refused(fault))
    this.#finish(fault)
  }

  /** From here on the call is paid, whether or not its client stays. */
  #settle(model: CatalogueModel, json: JsonRecord): void {
    const { admission, ask, tally } = this.#call
    this.#then(measure(this.#parts, this.#call, model, json), (measured) => {
      tally.add(model, measured, this.#stage.images)
      const settlement = settle(admission, ask, { cost: tally.cost, tokens: tally.tokens })
      this.#then(settlement, (settled) => this.#answer(model, json, settled))
    })
  }

  #answer(model: CatalogueModel, json: JsonRecord, settlement: Settlement): void {
    const { admission, sink, tally } = this.#call
    const isTruncated = admission.clamped && chunkOf(json).finishReason === "length"
    const send = () => {
      sink.json({
        ...withoutCosts(json),
        id: typeof json["id"] === "string" ? json["id"] : tally.head.id,
        object: "chat.completion",
        model: model.id,
        usage: usageObject(tally, json["usage"]),
        router: routerBlock(this.#call, settlement, isTruncated)
      })
      this.#finish(undefined)
    }
    this.#parts.log.appendThen(tally.answered(settlement), () => this.#safely(send))
  }

  #then<A extends object>(soon: Soon<A>, next: (value: A) => void): void {
    if (Effect.isEffect(soon)) this.#run(Effect.map(soon, (value) => this.#safely(() => next(value))))
    else next(soon)
  }

  #run(effect: Effect.Effect<void>): void {
    this.#end.run(Effect.catchCause(effect, (cause) => Effect.sync(() => this.#die(Cause.squash(cause)))))
  }

  #finish(fault: Problem | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#end.over(fault)
  }

  /** A defect ends this call, and not the answers that share its connection or its turn. */
  #safely(step: () => void): void {
    if (this.#isOver) return
    try {
      step()
    } catch (defect) {
      this.#die(defect)
    }
  }

  #die(defect: unknown): void {
    // It was reported already, and has no receiver left.
    if (this.#isOver) throw defect
    this.dispose()
    this.#end.died(defect)
  }
}

const answered: Tried<undefined> = { _tag: "Done", value: undefined, health: "succeeded" }

/** `PlainCall` for a call that runs in a fiber already. */
export const answerPlain = (
  parts: CallParts,
  call: Call,
  stage: LastStage
): Effect.Effect<Problem | undefined> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.callback((resume) => {
      const plain = new PlainCall(parts, call, stage, {
        over: (fault) => resume(Effect.succeed(fault)),
        died: (defect) => resume(Effect.die(defect)),
        run: Effect.runForkWith(context)
      })
      plain.begin()
      return Effect.sync(() => plain.dispose())
    })
  )
