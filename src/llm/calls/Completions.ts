import { Context, Effect, Layer } from "effect"
import { type CollectionRoute, CollectionRoutes } from "#actors/llm/CollectionRoutes.ts"
import type { ActorUnavailable } from "#actors/kernel/ActorError.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { AppConfig } from "#src/Config.ts"
import type { AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { admittedCall } from "./Settling.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import { isReported, reportCall, type ReportedAsk } from "./CallReport.ts"
import { type AnswerSink, type Call, type CallParts, type LastStage, makeCallParts } from "./CallParts.ts"
import { CallsInFlight } from "./CallsInFlight.ts"
import { CallTally } from "./CallTally.ts"
import { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { Client } from "./ClientStream.ts"
import { CollectionDirectory } from "#src/llm/catalogue/CollectionDirectory.ts"
import { feesOf, holdOf, tooLong } from "./Estimate.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { answerPlain, askPlain, measure, PlainCall, type PlainEnd, settleLeft } from "./PlainAnswer.ts"
import { awaited } from "./Soon.ts"
import { answerStream, type Outlet, outletOf } from "./StreamAnswer.ts"
import { resolve, type Candidates } from "./Candidates.ts"
import { textOf } from "#streams/llm/ChatChunk.ts"
import { tryInOrder } from "./Failover.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import * as CallFault from "./CallFault.ts"

/** A completion's request, after its body was read. */
export interface CompletionAsk extends ReportedAsk {
  readonly source: "api" | "agent"
  readonly request: ChatRequest
  readonly client: Client
  readonly sink: AnswerSink
  /** epoch milliseconds */
  readonly startedAt: number
  /** Receives the record of the call. */
  readonly onRecord?: (record: CallRecord) => void
}

interface Services {
  readonly catalogue: Catalogue["Service"]
  readonly collections: CollectionDirectory["Service"]
  readonly routes: CollectionRoutes["Service"]
  readonly ledger: Ledger["Service"]
  readonly parts: CallParts
  readonly underWay: CallsInFlight["Service"]
  /** the highest believable cost of a call whose price no list has */
  readonly ceiling: Decimal.Decimal
}

const makeServices = Effect.gen(function* () {
  const { upstreamCostMaxUsd } = yield* AppConfig
  const services: Services = {
    catalogue: yield* Catalogue,
    collections: yield* CollectionDirectory,
    routes: yield* CollectionRoutes,
    ledger: yield* Ledger,
    parts: yield* makeCallParts,
    underWay: yield* CallsInFlight,
    ceiling: Decimal.fromNumber(upstreamCostMaxUsd) ?? Decimal.zero
  }
  return services
})

/**
 * Makes completions: finds the models that may answer, holds the highest cost, asks, relays, settles. Source:
 * contract/llm#completions.
 */
export class Completions extends Context.Service<
  Completions,
  {
    /** The fault to answer with; undefined where the sink has been given the answer, or its client has gone. */
    readonly complete: (ask: CompletionAsk) => Effect.Effect<Problem | undefined>
    /**
     * Makes a plain call without a fiber, where only the model has to be waited for. False, and nothing was begun: `complete`
     * has to make it.
     */
    readonly completeAtHand: (ask: CompletionAsk, end: PlainEnd) => boolean
  }
>()("signalbox/llm/Completions") {
  static readonly layer = Layer.effect(
    Completions,
    Effect.map(makeServices, (services) =>
      Completions.of({ complete: completing(services), completeAtHand: completingAtHand(services) })
    )
  )
}

const tallyOf = ({ ceiling, parts }: Services, ask: CompletionAsk, candidates: Candidates): CallTally =>
  new CallTally(headOf(ask, candidates), {
    fees: { units: feesOf(ask.request, parts.limits), scale: 12 },
    ceiling
  })

const completing = (services: Services): Completions["Service"]["complete"] => {
  const { catalogue, collections, ledger, routes, underWay } = services
  const { slowCallMillis } = services.parts.limits
  const make = (ask: CompletionAsk, candidates: Candidates) => {
    const parts = partsFor(services.parts, ask)
    const hold = askOf(ask, candidates, parts)
    const tally = tallyOf(services, ask, candidates)
    return admittedCall(ledger, parts.log, tally, hold, (admission) =>
      Effect.matchEffect(routeOf(routes, candidates), {
        onSuccess: (route) => answer(parts, { ...ask, candidates, admission, ask: hold, tally, route }),
        onFailure: ({ _tag }) =>
          Effect.succeed(CallFault.overloaded(`The collection cannot be routed at the moment (${_tag})`))
      })
    ).pipe(Effect.tap((fault) => reportCall(ask, tally, fault, slowCallMillis)))
  }
  const refuse = (ask: CompletionAsk, fault: Problem) =>
    Effect.as(reportCall(ask, undefined, fault, slowCallMillis), fault)
  return (ask) =>
    Effect.suspend(() => {
      const candidates = resolve(ask.key, ask.request, catalogue, collections)
      if ("status" in candidates) return refuse(ask, candidates)
      const tooMuch = tooLong(ask.request, candidates)
      if (tooMuch !== undefined) return refuse(ask, CallFault.invalidRequest(tooMuch))
      return underWay.admit(ask.key, make(ask, candidates))
    })
}

/** The hot path: what is refused, has to be waited for or takes more than one stage is left to `complete`. */
const completingAtHand = (services: Services): Completions["Service"]["completeAtHand"] => {
  const { ledger, parts, underWay } = services
  const { slowCallMillis } = parts.limits
  return (ask, end) => {
    const { key, onRecord, request } = ask
    if (request.stream || parts.isTraced || onRecord !== undefined) return false
    const found = foundAtHand(services, ask)
    if (found === undefined) return false
    const hold = askOf(ask, found.candidates, parts)
    const admission = ledger.admitNow(hold)
    if (admission === undefined) return false
    const tally = tallyOf(services, ask, found.candidates)
    const call: Call = { ...ask, ...found, admission, ask: hold, tally }
    const leave = () => {
      admission.release()
      underWay.leave(key)
    }
    const over = (fault: Problem | undefined) => {
      leave()
      if (isReported(tally.record, fault, slowCallMillis))
        end.run(reportCall(ask, tally, fault, slowCallMillis))
      end.over(fault)
    }
    const died = (defect: unknown) => {
      leave()
      end.died(defect)
    }
    const plain = new PlainCall(parts, call, lastStage(call, undefined), { over, died, run: end.run })
    if (underWay.enter(key) !== undefined) {
      admission.release()
      return false
    }
    plain.begin()
    return true
  }
}

/** The models of a call of one stage, and the route through them, if that is in memory. */
const foundAtHand = (
  { catalogue, collections, routes }: Services,
  { key, request }: CompletionAsk
): Pick<Call, "candidates" | "route"> | undefined => {
  const candidates = resolve(key, request, catalogue, collections)
  if ("status" in candidates || candidates.vision.length > 0) return undefined
  if (tooLong(request, candidates) !== undefined) return undefined
  const { collection } = candidates
  const route = collection === undefined ? undefined : routes.peek(collection.id)
  return collection !== undefined && route === undefined ? undefined : { candidates, route }
}

/** In-process callers receive the record that is logged. */
const partsFor = (parts: CallParts, { onRecord }: CompletionAsk): CallParts => {
  if (onRecord === undefined) return parts
  const { log } = parts
  const append = (record: CallRecord) => {
    log.append(record)
    onRecord(record)
  }
  const appendThen = (record: CallRecord, next: () => void) => {
    log.appendThen(record, next)
    onRecord(record)
  }
  return { ...parts, log: { ...log, append, appendThen } }
}

const routeOf = (
  routes: CollectionRoutes["Service"],
  { collection }: Candidates
): Effect.Effect<CollectionRoute | undefined, ActorUnavailable> => {
  if (collection === undefined) return Effect.succeed(undefined)
  const known = routes.peek(collection.id)
  return known === undefined ? routes.acquire(collection.id) : Effect.succeed(known)
}

const askOf = (
  { key, request, source }: CompletionAsk,
  candidates: Candidates,
  { limits }: CallParts
): AdmissionAsk => ({
  ...holdOf(request, candidates, limits),
  userId: key.ownerId,
  keyId: key.keyId,
  source
})

const headOf = ({ id, key, request, source, startedAt }: CompletionAsk, { collection }: Candidates) => ({
  id,
  userId: key.ownerId,
  keyId: key.keyId,
  source,
  startedAt,
  requested: request.model,
  collection: collection?.id ?? "",
  kind: "chat" as const,
  streamed: request.stream
})

/** A stream's client gets signs of life from the first stage on, and is released with any outcome. */
const answer = (parts: CallParts, call: Call): Effect.Effect<Problem | undefined> =>
  Effect.suspend(() => {
    const outlet = call.request.stream ? outletOf(call) : undefined
    return Effect.ensuring(
      stagesOf(parts, call, outlet),
      Effect.sync(() => outlet?.stream.dispose())
    )
  })

/** The stages of a call. Source: contract/llm#vision. */
const stagesOf = Effect.fnUntraced(function* (parts: CallParts, call: Call, outlet: Outlet | undefined) {
  let description: string | undefined
  if (call.candidates.vision.length > 0) {
    description = yield* describeImages(parts, call)
    if (description === undefined) return void (yield* settleLeft(parts, call))
  }
  const stage = lastStage(call, description)
  return yield* outlet === undefined
    ? answerPlain(parts, call, stage)
    : answerStream(parts, call, outlet, stage)
})

/** The stage that answers; `description` stands for the images if they were described before. */
const lastStage = (
  { admission, candidates, request, tally }: Call,
  description: string | undefined
): LastStage => {
  tally.stages.push("primary")
  const maxTokens = admission.clamped
    ? Math.max(1, Math.floor(admission.outputTokens / request.choices))
    : undefined
  let triesLeft = candidates.primary.length
  return {
    bodyOf: (model) =>
      request.source.forModel({ model: model.id, description, maxTokens, isLast: --triesLeft <= 0 }),
    images: description === undefined ? request.imageCount : 0
  }
}

/**
 * Asks the vision members, in order, to describe the images. Answers the text that stands for them, which in the worst
 * case tells why there is none; undefined when the client left. Source: contract/llm#vision.
 */
const describeImages = Effect.fnUntraced(function* (parts: CallParts, call: Call) {
  const { request, route, tally, candidates } = call
  tally.stages.push("vision")
  const result = yield* tryInOrder(candidates.vision, route, (model) =>
    askPlain(
      parts,
      call,
      model,
      request.source.forVision(model.id, parts.limits.visionTokens),
      request.imageCount
    )
  )
  if (result._tag === "ClientGone") return undefined
  if (result._tag === "AllFailed") {
    const [first] = result.failures
    return `[The images could not be described: ${first?.message ?? "no model was asked"}]`
  }
  const measured = yield* awaited(measure(parts, call, result.model, result.value))
  tally.add(result.model, measured, request.imageCount)
  return `[What the images show, as ${result.model.id} describes it]\n${textOf(result.value)}`
})
