import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import type { RoomServer } from "#src/Room.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import { Archives } from "./archive/Archives.ts"
import { archiveRoutes } from "./archive/ArchivesRoutes.ts"
import { Devices } from "./devices/Devices.ts"
import * as DevicesRoutes from "./devices/DevicesRoutes.ts"
import * as CliLoginRoutes from "./login/CliLoginRoutes.ts"
import { CliLogins } from "./login/CliLogins.ts"
import { loginPage, loginPath } from "./login/LoginPage.ts"
import { Manifests } from "./sync/Manifests.ts"
import * as SyncFlags from "./sync/SyncFlags.ts"
import * as SyncRoutes from "./sync/SyncRoutes.ts"
import { treeEndpoints, treeServices, treeSweep } from "./tree/TreeServices.ts"

const services = Layer.mergeAll(Archives.layer, CliLogins.layer, Manifests.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(SyncFlags.SyncFlags.layer)),
  Layer.provideMerge(Layer.mergeAll(Devices.layer)),
  Layer.provideMerge(treeServices)
)

const endpoints = HttpApiBuilder.layer(FilesRoomApi).pipe(
  Layer.provide([treeEndpoints, DevicesRoutes.layer, CliLoginRoutes.layer, SyncRoutes.layer]),
  Layer.provide([DevicesRoutes.header, CliLoginRoutes.begins, CliLoginRoutes.sessionsOnly])
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    Layer.suspend(loginPage),
    SyncFlags.sweeping,
    Sweep.layer("devices", "revoked_at"),
    treeSweep
  ).pipe(Layer.provide(services)),
  raw: Layer.mergeAll(RawRoutes.addRaw(archiveRoutes)).pipe(Layer.provide(services)),
  paths: [["GET", loginPath]]
}
