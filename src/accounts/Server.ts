import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import type { RoomServer } from "#src/Room.ts"
import * as QuarantineRoutes from "#src/system/QuarantineRoutes.ts"
import { Quarantines } from "#src/system/Quarantines.ts"
import * as SystemRoutes from "#src/system/SystemRoutes.ts"
import * as AccountRoutes from "./AccountRoutes.ts"
import * as AccountsReadiness from "./AccountsReadiness.ts"
import * as Admission from "./Admission.ts"
import * as AdminRoutes from "./AdminRoutes.ts"
import * as KeysRoutes from "./KeysRoutes.ts"
import { RequestCounts } from "./RequestCounts.ts"

const endpoints = HttpApiBuilder.layer(AccountsRoomApi).pipe(
  Layer.provide([
    AccountRoutes.layer,
    AdminRoutes.layer,
    KeysRoutes.layer,
    QuarantineRoutes.layer,
    SystemRoutes.layer
  ])
)

/** The middleware of all rooms that accounts provide. */
export const middleware = Layer.merge(Admission.middlewareLayer, AccountRoutes.pagesForAdmins)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    AccountsReadiness.layer,
    Quarantines.entry(
      "activity",
      Effect.map(RequestCounts, ({ quarantine }) => quarantine)
    )
  ),
  raw: Layer.empty,
  paths: []
}
