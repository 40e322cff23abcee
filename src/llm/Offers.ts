import { Effect, Layer } from "effect"
import { CollectionRoutes } from "#actors/llm/CollectionRoutes.ts"
import { AppConfig } from "#src/Config.ts"
import * as Stores from "#src/Stores.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import { UpstreamAddress } from "#src/infra/upstream/UpstreamAddress.ts"
import { ModelAccess } from "./ModelAccess.ts"
import { InProcessCalls } from "./InProcessCalls.ts"
import { CallDrain } from "#src/llm/usage/CallDrain.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { CallsInFlight } from "#src/llm/calls/CallsInFlight.ts"
import { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import { CollectionDirectory } from "#src/llm/catalogue/CollectionDirectory.ts"
import { Collections } from "#src/llm/catalogue/Collections.ts"
import { Completions } from "#src/llm/calls/Completions.ts"
import { Credits } from "#src/llm/ledger/Credits.ts"
import { Ledger } from "#src/llm/ledger/Ledger.ts"
import { LedgerCheck } from "#src/llm/ledger/LedgerCheck.ts"
import { MarkupDirectory } from "#src/llm/catalogue/MarkupDirectory.ts"
import { Markups } from "#src/llm/catalogue/Markups.ts"
import { Plans } from "#src/llm/ledger/Plans.ts"
import { SubscriptionDirectory } from "#src/llm/ledger/SubscriptionDirectory.ts"
import { Subscriptions } from "#src/llm/ledger/Subscriptions.ts"
import { TokenCounter } from "#src/llm/calls/TokenCounter.ts"
import { Usage } from "#src/llm/usage/Usage.ts"
import * as Sandbox from "#src/sandbox/Sandbox.ts"

/** The upstream of `UPSTREAM_URL`, else a sandbox of this process's own. */
const upstreamAddress = Layer.effect(
  UpstreamAddress,
  Effect.gen(function* () {
    const { upstreamApiKey: apiKey, upstreamUrl } = yield* AppConfig
    if (upstreamUrl !== undefined && apiKey === undefined)
      yield* Effect.logWarning(
        "UPSTREAM_URL is set without UPSTREAM_API_KEY: an upstream that wants a key refuses every call"
      )
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

/** Credits, plans and subscriptions. */
const money = Layer.mergeAll(Credits.layer, Subscriptions.layer, LedgerCheck.layer)

/** From the log of calls upwards: the ledger settles from it, the drain carries it into ClickHouse. */
export const offers = Layer.merge(ModelAccess.layer, InProcessCalls.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Completions.layer, Collections.layer, Markups.layer, Usage.layer, money)),
  Layer.provideMerge(CallsInFlight.layer),
  Layer.provideMerge(Layer.mergeAll(Catalogue.layer, CollectionDirectory.layer, Ledger.layer)),
  Layer.provideMerge(
    Layer.mergeAll(
      CallDrain.layer,
      MarkupDirectory.layer,
      Plans.layer,
      SubscriptionDirectory.layer,
      TokenCounter.layer,
      collectionRoutes,
      Upstream.layer
    )
  ),
  Layer.provideMerge(Layer.merge(CallLog.layer, upstreamAddress)),
  Layer.provideMerge(Stores.clickHouse)
)
