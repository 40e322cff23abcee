import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import type { RoomServer } from "#src/Room.ts"
import * as QuarantineRoutes from "#src/system/QuarantineRoutes.ts"
import { Quarantines } from "#src/system/Quarantines.ts"
import * as SystemRoutes from "#src/system/SystemRoutes.ts"
import * as AccountRoutes from "./AccountRoutes.ts"
import * as AccountsReadiness from "./AccountsReadiness.ts"
import * as AdminRoutes from "./AdminRoutes.ts"
import * as Authentication from "./Authentication.ts"
import * as KeysRoutes from "./KeysRoutes.ts"
import * as RateLimiting from "./RateLimiting.ts"
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

/** Middleware of the endpoints of all rooms. */
export const middleware = Layer.mergeAll(
  Authentication.layer,
  RateLimiting.layer,
  AccountRoutes.pagesForAdmins,
  AdminRoutes.administratorsOnly
)

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
