import { Context, Effect, Layer } from "effect"
import { type CollectionRoute, CollectionRoutes } from "#actors/llm/CollectionRoutes.ts"
import type { ActorUnavailable } from "#actors/kernel/ActorError.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { AppConfig } from "#src/Config.ts"
import type { AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { admittedCall } from "./Settling.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import { reportCall, type ReportedAsk } from "./CallReport.ts"
import { type AnswerSink, type Call, type CallParts, makeCallParts } from "./CallParts.ts"
import { CallsInFlight } from "./CallsInFlight.ts"
import { CallTally } from "./CallTally.ts"
import { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { Client } from "./ClientStream.ts"
import { CollectionDirectory } from "#src/llm/catalogue/CollectionDirectory.ts"
import { feesOf, holdOf, tooLong } from "./Estimate.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { answerPlain, settleLeft, addAnswer, askPlain } from "./PlainAnswer.ts"
import { answerStream, type Outlet, outletOf } from "./StreamAnswer.ts"
import { resolve, type Candidates } from "./Candidates.ts"
import { textOf } from "#streams/llm/ChatChunk.ts"
import { tryInOrder } from "./Failover.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import * as CallFault from "./CallFault.ts"

/** A completion's request, after its body was read. */
interface CompletionAsk extends ReportedAsk {
  readonly source: "api" | "agent"
  readonly request: ChatRequest
  readonly client: Client
  readonly sink: AnswerSink
  /** epoch milliseconds */
  readonly startedAt: number
  /** Receives the record of the call. */
  readonly onRecord?: (record: CallRecord) => void
}

/**
 * Makes completions: finds the models that may answer, holds the highest cost, asks, relays, settles. Source:
 * contract/llm#completions.
 */
export class Completions extends Context.Service<
  Completions,
  {
    /** The fault to answer with; undefined where the sink has been given the answer, or its client has gone. */
    readonly complete: (ask: CompletionAsk) => Effect.Effect<Problem | undefined>
  }
>()("signalbox/llm/Completions") {
  static readonly layer = Layer.effect(
    Completions,
    Effect.gen(function* () {
      const { limits, upstreamCostMaxUsd } = yield* AppConfig
      const catalogue = yield* Catalogue
      const collections = yield* CollectionDirectory
      const routes = yield* CollectionRoutes
      const ledger = yield* Ledger
      const all = yield* makeCallParts
      const underWay = yield* CallsInFlight

      const make = (ask: CompletionAsk, candidates: Candidates) => {
        const parts = partsFor(all, ask)
        const hold = askOf(ask, candidates, parts)
        const tally = new CallTally(headOf(ask, candidates), {
          fees: { units: feesOf(ask.request, limits), scale: 12 },
          ceiling: Decimal.fromNumber(upstreamCostMaxUsd) ?? Decimal.zero
        })
        return admittedCall(ledger, parts.log, tally, hold, (admission) =>
          Effect.matchEffect(routeOf(routes, candidates), {
            onSuccess: (route) => answer(parts, { ...ask, candidates, admission, ask: hold, tally, route }),
            onFailure: ({ _tag }) =>
              Effect.succeed(CallFault.overloaded(`The collection cannot be routed at the moment (${_tag})`))
          })
        ).pipe(Effect.tap((fault) => reportCall(ask, tally, fault, limits.slowCallMillis)))
      }
      const refuse = (ask: CompletionAsk, fault: Problem) =>
        Effect.as(reportCall(ask, undefined, fault, limits.slowCallMillis), fault)

      const complete = (ask: CompletionAsk) =>
        Effect.suspend(() => {
          const candidates = resolve(ask.key, ask.request, catalogue, collections)
          if ("status" in candidates) return refuse(ask, candidates)
          const tooMuch = tooLong(ask.request, candidates)
          if (tooMuch !== undefined) return refuse(ask, CallFault.invalidRequest(tooMuch))
          return underWay.admit(ask.key, make(ask, candidates))
        })
      return Completions.of({ complete })
    })
  )
}

/** In-process callers receive the record that is logged. */
const partsFor = (parts: CallParts, { onRecord }: CompletionAsk): CallParts => {
  if (onRecord === undefined) return parts
  const { log } = parts
  const append = (record: CallRecord) => {
    log.append(record)
    onRecord(record)
  }
  return { ...parts, log: { ...log, append } }
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
  const { admission, request, tally, candidates } = call
  let description: string | undefined
  if (candidates.vision.length > 0) {
    description = yield* describeImages(parts, call)
    if (description === undefined) return void (yield* settleLeft(parts, call))
  }
  tally.stages.push("primary")
  const maxTokens = admission.clamped
    ? Math.max(1, Math.floor(admission.outputTokens / request.choices))
    : undefined
  let triesLeft = candidates.primary.length
  const bodyOf = (model: CatalogueModel) =>
    request.source.forModel({ model: model.id, description, maxTokens, isLast: --triesLeft <= 0 })
  const images = description === undefined ? request.imageCount : 0
  return yield* outlet === undefined
    ? answerPlain(parts, call, bodyOf, images)
    : answerStream(parts, call, outlet, bodyOf, images)
})

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
  yield* addAnswer(parts, call, result.model, result.value, request.imageCount)
  return `[What the images show, as ${result.model.id} describes it]\n${textOf(result.value)}`
})
