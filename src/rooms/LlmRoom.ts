import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CollectionRoutes } from "#actors/llm/CollectionRoutes.ts"
import { LlmRoomApi } from "#schemas/Api.ts"
import { AppConfig } from "#src/Config.ts"
import * as Stores from "#src/infra/Stores.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import { UpstreamAddress } from "#src/infra/upstream/UpstreamAddress.ts"
import { CallAnswers } from "#src/llm/CallAnswers.ts"
import { CallDrain } from "#src/llm/CallDrain.ts"
import { CallLog } from "#src/llm/CallLog.ts"
import { CallSink } from "#src/llm/CallSink.ts"
import { Catalogue } from "#src/llm/Catalogue.ts"
import { CollectionDirectory } from "#src/llm/CollectionDirectory.ts"
import { Collections } from "#src/llm/Collections.ts"
import * as CollectionsRoutes from "#src/llm/CollectionsRoutes.ts"
import { completionRoutes } from "#src/llm/CompletionRoutes.ts"
import { Completions } from "#src/llm/Completions.ts"
import { Embeddings } from "#src/llm/Embeddings.ts"
import { Ledger } from "#src/llm/Ledger.ts"
import { MarkupDirectory } from "#src/llm/MarkupDirectory.ts"
import { Markups } from "#src/llm/Markups.ts"
import * as MarkupsRoutes from "#src/llm/MarkupsRoutes.ts"
import * as ModelsRoutes from "#src/llm/ModelsRoutes.ts"
import { PlanDirectory } from "#src/llm/PlanDirectory.ts"
import { SubscriptionDirectory } from "#src/llm/SubscriptionDirectory.ts"
import { TokenCounter } from "#src/llm/TokenCounter.ts"
import * as Sandbox from "#src/sandbox/Sandbox.ts"
import { HotRouteTable } from "./HotRouteTable.ts"

/** The upstream of `UPSTREAM_URL`, else a sandbox of this process's own. */
const upstreamAddress = Layer.effect(
  UpstreamAddress,
  Effect.gen(function* () {
    const { upstreamApiKey: apiKey, upstreamUrl } = yield* AppConfig
    if (upstreamUrl !== undefined) return { url: upstreamUrl, apiKey, isSandbox: false }
    const { url } = yield* Sandbox.start()
    return { url, apiKey: undefined, isSandbox: true }
  })
)

const collectionRoutes = Layer.unwrap(
  Effect.map(AppConfig, ({ limits }) =>
    CollectionRoutes.layer({
      failuresMax: limits.breakerFailures,
      openMinMillis: limits.breakerMinMillis,
      openMaxMillis: limits.breakerMaxMillis,
      limitedMillis: limits.breakerLimitedMillis,
      membersMax: limits.collectionModels,
      idleMillis: limits.collectionRouteIdleMillis
    })
  )
)

/** From the log of calls upwards: the ledger settles from it, the drain carries it into ClickHouse. */
const services = Layer.mergeAll(Completions.layer, Embeddings.layer, Collections.layer, Markups.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Catalogue.layer, CollectionDirectory.layer, Ledger.layer)),
  Layer.provideMerge(
    Layer.mergeAll(
      CallAnswers.layer,
      CallDrain.layer.pipe(Layer.provide(CallSink.layer)),
      MarkupDirectory.layer,
      PlanDirectory.layer,
      SubscriptionDirectory.layer,
      TokenCounter.layer,
      collectionRoutes,
      Upstream.layer
    )
  ),
  Layer.provideMerge(Layer.merge(CallLog.layer, upstreamAddress)),
  Layer.provideMerge(Stores.clickHouse)
)

export const api = LlmRoomApi

export const routes = HttpApiBuilder.layer(LlmRoomApi).pipe(
  Layer.provide([ModelsRoutes.layer, CollectionsRoutes.layer, MarkupsRoutes.layer]),
  Layer.provide(services)
)

export const hotRoutes = HotRouteTable.add(completionRoutes).pipe(Layer.provide(services))
