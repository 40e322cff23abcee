import { Effect } from "effect"
import { AppConfig } from "#src/Config.ts"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"
import type { ChatChunk } from "#streams/llm/ChatChunk.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import type { EstimateReason } from "#streams/llm/CallRecord.ts"
import { readUsage } from "#streams/llm/UpstreamUsage.ts"
import type { Admission, AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { admittedCall, settle } from "./Settling.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import { reportCall, type ReportedAsk } from "./CallReport.ts"
import { type CallParts, makeCallParts } from "./CallParts.ts"
import { CallsInFlight } from "./CallsInFlight.ts"
import { traceAttempt } from "./CallTrace.ts"
import { CallTally, routerBlock, type Measured } from "./CallTally.ts"
import { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { estimate } from "./Charge.ts"
import type { Client } from "./ClientStream.ts"
import { tokensOnly, usageObject } from "./CountedUsage.ts"
import type { EmbeddingsRequest } from "#src/llm/requests/EmbeddingsRequest.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { plainAttempt } from "./PlainAttempt.ts"
import { awaited } from "./Soon.ts"
import { faultOf } from "./Failover.ts"
import type { Spent } from "./Spent.ts"
import { mayUseModel, unknownModel } from "./Candidates.ts"
import { estimateTokens } from "./TokenCounter.ts"

interface EmbeddingsAsk extends ReportedAsk {
  readonly request: EmbeddingsRequest
  readonly client: Client
  readonly send: (body: unknown) => void
  /** epoch milliseconds */
  readonly startedAt: number
}

/**
 * Makes embeddings: one model, one answer, billed like a completion without output. Answers the fault to send; undefined
 * where the answer was sent, or its client has gone. Source: contract/llm#embeddings.
 */
export const makeEmbeddings = Effect.gen(function* () {
  const catalogue = yield* Catalogue
  const ledger = yield* Ledger
  const underWay = yield* CallsInFlight
  const { limits, upstreamCostMaxUsd } = yield* AppConfig
  const parts = yield* makeCallParts
  const { slowCallMillis } = limits
  const refuse = (ask: EmbeddingsAsk, fault: Problem) =>
    Effect.as(reportCall(ask, undefined, fault, slowCallMillis), fault)
  return (ask: EmbeddingsAsk): Effect.Effect<Problem | undefined> => {
    const { key, request } = ask
    if (!mayUseModel(key, request.model))
      return refuse(ask, CallFault.modelNotAllowed(request.model, "model"))
    const model = catalogue.get(request.model)
    if (model === undefined) return refuse(ask, unknownModel(request.model, catalogue))
    const hold = askOf(ask, model)
    const terms = {
      fees: Decimal.zero,
      ceiling: Decimal.fromNumber(upstreamCostMaxUsd) ?? Decimal.zero
    }
    const tally = new CallTally(headOf(ask), terms)
    return underWay
      .admit(
        key,
        admittedCall(ledger, parts.log, tally, hold, (admission) =>
          answer(parts, { ...ask, model, hold, tally, admission })
        )
      )
      .pipe(Effect.tap((fault) => reportCall(ask, tally, fault, slowCallMillis)))
  }
})

const askOf = ({ key, request }: EmbeddingsAsk, model: CatalogueModel): AdmissionAsk => {
  const promptTokens = promptMostOf(request, model)
  return {
    userId: key.ownerId,
    keyId: key.keyId,
    source: "api",
    models: [model.id],
    promptTokens,
    outputTokens: 0,
    outputTokensMin: 0,
    costOf: () => (model.isFree ? 0n : estimate(model, promptTokens, 0, 0))
  }
}

/** A token is a byte of the text at least, and every text has something around it. */
const promptMostOf = (
  { inputs, textBytes }: EmbeddingsRequest,
  { contextLength }: CatalogueModel
): number => {
  const tokens = textBytes + inputs * framingTokens
  return contextLength > 0 ? Math.min(tokens, inputs * contextLength) : tokens
}

const framingTokens = 16

const headOf = ({ id, key, request, startedAt }: EmbeddingsAsk) => ({
  id,
  userId: key.ownerId,
  keyId: key.keyId,
  source: "api" as const,
  startedAt,
  requested: request.model,
  collection: "",
  kind: "embeddings" as const,
  streamed: false
})

interface Call extends EmbeddingsAsk {
  readonly model: CatalogueModel
  readonly hold: AdmissionAsk
  readonly tally: CallTally
  readonly admission: Admission
}

const problemOf = ({ json }: ChatChunk): string | undefined =>
  Array.isArray(json["data"]) && json["data"].length > 0 ? undefined : "The model's answer was empty"

/** The reported usage, or the reason against it: more than was sent, or none for an input that is not empty. */
const believed = ({ hold }: Call, reported: unknown): Measured | { readonly doubt: EstimateReason } => {
  const usage = readUsage(reported)
  if (usage === undefined) return { doubt: isJsonRecord(reported) ? "usage_out_of_bounds" : "no_usage" }
  const isPlausible = usage.promptTokens > 0 && usage.promptTokens <= hold.promptTokens
  return isPlausible
    ? { usage: { ...usage, completionTokens: 0 }, doubt: undefined }
    : { doubt: "usage_out_of_bounds" }
}

const usageOf = (
  parts: CallParts,
  call: Call,
  reported: unknown,
  missing?: EstimateReason
): Effect.Effect<Measured> => {
  const told = believed(call, reported)
  if ("usage" in told) return Effect.succeed(told)
  const { text, textLength } = call.request
  const counted = text === undefined ? Effect.succeed(estimateTokens(textLength)) : parts.counter.count(text)
  return Effect.map(counted, (promptTokens) => ({
    usage: tokensOnly(promptTokens, 0),
    doubt: missing ?? told.doubt
  }))
}

/** A client that left pays the call's known usage, or the part that was read of it. */
const leave = Effect.fnUntraced(function* (parts: CallParts, call: Call, spent: Spent) {
  const { admission, hold, model, tally } = call
  if (spent.isTaken) tally.add(model, yield* usageOf(parts, call, spent.usage, "abandoned"), 0)
  const settlement = yield* awaited(settle(admission, hold, { cost: tally.cost, tokens: tally.tokens }))
  parts.log.append(tally.clientGone(settlement))
})

const answer = Effect.fnUntraced(function* (parts: CallParts, call: Call) {
  const { admission, client, hold, model, request, tally } = call
  const { limits, log, upstream } = parts
  tally.stages.push("primary")
  tally.attempts++
  const body = request.outgoing()
  const attempt = plainAttempt({ upstream, path: "/embeddings", body, client, limits, problemOf })
  const outcome = yield* traceAttempt(parts, "embeddings", model, attempt)
  if (outcome._tag === "ClientGone") return void (yield* leave(parts, call, outcome.spent))
  if (outcome._tag === "Failed") {
    tally.told(model, outcome.failure)
    const told = believed(call, outcome.spent.usage)
    if ("usage" in told) tally.failed(model, told, 0)
    const fault = faultOf([outcome.failure])
    log.append(tally.refused(fault))
    return fault
  }
  const { json } = outcome
  const measured = yield* usageOf(parts, call, json["usage"])
  tally.add(model, measured, 0)
  const settlement = yield* awaited(settle(admission, hold, { cost: tally.cost, tokens: tally.tokens }))
  log.append(tally.answered(settlement))
  const { completion_tokens: _, ...usage } = usageObject(measured.usage, json["usage"])
  call.send({
    ...json,
    object: "list",
    model: model.id,
    usage,
    router: routerBlock({ request, tally, candidates: noCollection }, settlement, false)
  })
  return undefined
})

const noCollection = { collection: undefined, autoRoute: false }
