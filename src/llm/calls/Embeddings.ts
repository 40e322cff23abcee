import { Context, Effect, Layer } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import type { JsonRecord } from "#schemas/core/JsonRecord.ts"
import { readUsage, type UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
import type { Admission, AdmissionAsk } from "#src/llm/ledger/Admission.ts"
import { admittedCall } from "./AdmittedCall.ts"
import * as CallFault from "./CallFault.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import type { CallParts } from "./CallParts.ts"
import { CallsUnderWay } from "./CallsUnderWay.ts"
import { CallTally } from "./CallTally.ts"
import { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { estimate } from "./Charge.ts"
import type { Client } from "./Client.ts"
import { usageObject } from "./CountedUsage.ts"
import type { EmbeddingsRequest } from "#src/llm/requests/EmbeddingsRequest.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { plainAttempt } from "./PlainAttempt.ts"
import { routerBlock } from "./RouterBlock.ts"
import { settle } from "./Settling.ts"
import { faultOf } from "./Stage.ts"
import { mayUseModel } from "./Target.ts"
import { estimateTokens, TokenCounter } from "./TokenCounter.ts"

export interface EmbeddingsAsk {
  /** the call's id in the ledger, `req_…`: never used before */
  readonly id: string
  readonly key: Principal
  readonly request: EmbeddingsRequest
  readonly client: Client
  readonly send: (body: unknown) => void
  /** epoch milliseconds */
  readonly startedAt: number
}

/** Makes embeddings: one model, one answer, billed like a completion without output. Source: decisions, LLM. */
export class Embeddings extends Context.Service<
  Embeddings,
  {
    /** The fault to answer with; undefined where the answer was sent, or its client has gone. */
    readonly embed: (ask: EmbeddingsAsk) => Effect.Effect<CallFault.CallFault | undefined>
  }
>()("signalbox/llm/Embeddings") {
  static readonly layer = Layer.effect(
    Embeddings,
    Effect.gen(function* () {
      const catalogue = yield* Catalogue
      const ledger = yield* Ledger
      const underWay = yield* CallsUnderWay
      const { limits } = yield* AppConfig
      const parts: CallParts = {
        upstream: yield* Upstream,
        log: yield* CallLog,
        counter: yield* TokenCounter,
        limits
      }
      return Embeddings.of({
        embed: (ask) => {
          const { key, request } = ask
          if (!mayUseModel(key, request.model))
            return Effect.succeed(CallFault.modelNotAllowed(request.model, "model"))
          const model = catalogue.get(request.model)
          if (model === undefined) return Effect.succeed(CallFault.modelNotFound(request.model))
          const hold = askOf(ask, model)
          const tally = new CallTally(headOf(ask))
          return underWay.admit(
            key,
            admittedCall(ledger, parts.log, tally, hold, (admission) =>
              answer(parts, { ...ask, model, hold, tally, admission })
            )
          )
        }
      })
    })
  )
}

const askOf = ({ key, request }: EmbeddingsAsk, model: CatalogueModel): AdmissionAsk => {
  const promptTokens = estimateTokens(request.textLength)
  return {
    userId: key.userId,
    keyId: key.keyId,
    source: "api",
    models: [model.id],
    promptTokens,
    outputTokens: 0,
    outputTokensMin: 0,
    // What is beyond the estimate is prompt as well: a hold that has to grow grows by its price.
    costOf: (moreTokens) => (model.isFree ? 0n : estimate(model, promptTokens + moreTokens, 0, 0))
  }
}

const headOf = ({ id, key, request, startedAt }: EmbeddingsAsk) => ({
  id,
  userId: key.userId,
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

const problemOf = (json: JsonRecord): string | undefined =>
  Array.isArray(json["data"]) && json["data"].length > 0 ? undefined : "The model's answer was empty"

const usageOf = (parts: CallParts, { request }: Call, reported: unknown): Effect.Effect<UpstreamUsage> => {
  const usage = readUsage(reported)
  if (usage !== undefined) return Effect.succeed(usage)
  const counted =
    request.text === undefined
      ? Effect.succeed(estimateTokens(request.textLength))
      : parts.counter.count(request.text)
  return Effect.map(counted, (promptTokens) => ({
    promptTokens,
    completionTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    cost: undefined
  }))
}

const answer = Effect.fnUntraced(function* (parts: CallParts, call: Call) {
  const { admission, client, hold, model, request, tally } = call
  const { limits, log, upstream } = parts
  tally.stages.push("primary")
  tally.attempts++
  const body = request.outgoing()
  const outcome = yield* plainAttempt({ upstream, path: "/embeddings", body, client, limits, problemOf })
  if (outcome._tag === "ClientGone") return void log.append(tally.clientGone())
  if (outcome._tag === "Failed") {
    const fault = faultOf([outcome.failure])
    log.append(tally.refused(fault))
    return fault
  }
  const { json } = outcome
  const usage = yield* usageOf(parts, call, json["usage"])
  tally.add(model, usage, 0)
  const settlement = yield* settle(admission, hold, { cost: tally.cost, tokens: tally.tokens })
  log.append(tally.answered(settlement))
  call.send({
    ...json,
    object: "list",
    model: model.id,
    usage: usageObject(usage, json["usage"]),
    router: routerBlock({ request, tally, target: noCollection }, settlement, false)
  })
  return undefined
})

const noCollection = { collection: undefined, autoRoute: false }
