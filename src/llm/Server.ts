import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import type { RoomServer } from "#src/Room.ts"
import { offers } from "./Offers.ts"
import { catalogueReadiness } from "#src/llm/catalogue/Catalogue.ts"
import * as CollectionsRoutes from "#src/llm/catalogue/CollectionsRoutes.ts"
import { completionRoutes, unsupportedFormat } from "#src/llm/calls/CompletionRoutes.ts"
import * as CreditsRoutes from "#src/llm/ledger/CreditsRoutes.ts"
import * as LedgerRoutes from "#src/llm/ledger/LedgerRoutes.ts"
import * as MarkupsRoutes from "#src/llm/catalogue/MarkupsRoutes.ts"
import * as ModelsRoutes from "#src/llm/catalogue/ModelsRoutes.ts"
import * as PlansRoutes from "#src/llm/ledger/PlansRoutes.ts"
import * as SubscriptionsRoutes from "#src/llm/ledger/SubscriptionsRoutes.ts"
import * as UsageRoutes from "#src/llm/usage/UsageRoutes.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"

const endpoints = HttpApiBuilder.layer(LlmRoomApi).pipe(
  Layer.provide([
    ModelsRoutes.layer,
    CollectionsRoutes.layer,
    MarkupsRoutes.layer,
    CreditsRoutes.layer,
    PlansRoutes.layer,
    SubscriptionsRoutes.layer,
    LedgerRoutes.layer,
    UsageRoutes.layer
  ])
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    unsupportedFormat,
    catalogueReadiness,
    Sweep.layer("collections", "deleted_at")
  ).pipe(Layer.provide(offers)),
  raw: RawRoutes.add(completionRoutes).pipe(Layer.provide(offers)),
  paths: []
}
