import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import type { RoomServer } from "#src/Room.ts"
import { Devices } from "./devices/Devices.ts"
import * as DevicesRoutes from "./devices/DevicesRoutes.ts"
import * as CliLoginRoutes from "./login/CliLoginRoutes.ts"
import { CliLogins } from "./login/CliLogins.ts"
import { loginPage, loginPath } from "./login/LoginPage.ts"
import { treeEndpoints, treeServices, treeSweep } from "./tree/TreeServices.ts"

const services = CliLogins.layer.pipe(Layer.provideMerge(Devices.layer), Layer.provideMerge(treeServices))

const endpoints = HttpApiBuilder.layer(FilesRoomApi).pipe(
  Layer.provide([treeEndpoints, DevicesRoutes.layer, CliLoginRoutes.layer]),
  Layer.provide([DevicesRoutes.header, CliLoginRoutes.begins])
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    Layer.suspend(loginPage),
    Sweep.layer("devices", "revoked_at"),
    treeSweep
  ).pipe(Layer.provide(services)),
  raw: Layer.empty,
  paths: [["GET", loginPath]]
}
