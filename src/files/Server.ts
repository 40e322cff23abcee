import { Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"
import type { RoomServer } from "#src/Room.ts"
import { RawServerUrl } from "#src/ServerUrl.ts"
import { RawRoutes } from "#src/front/RawRoutes.ts"
import { roomDocumentPath, roomDocumentRoute } from "./access/RoomDocument.ts"
import { Archives } from "./archive/Archives.ts"
import { archiveRoutes } from "./archive/ArchivesRoutes.ts"
import { DeviceDirectories } from "./devices/DeviceDirectories.ts"
import { Devices } from "./devices/Devices.ts"
import * as DevicesRoutes from "./devices/DevicesRoutes.ts"
import { sendRoutes } from "./devices/SendRoutes.ts"
import { directRoutes } from "./links/DirectRoutes.ts"
import { linkServices, linkSweep } from "./links/LinkServices.ts"
import * as ShareLinksRoutes from "./links/ShareLinksRoutes.ts"
import { UploadLinks } from "./links/UploadLinks.ts"
import * as CliLoginRoutes from "./login/CliLoginRoutes.ts"
import { CliLogins } from "./login/CliLogins.ts"
import { loginPage, loginPath } from "./login/LoginPage.ts"
import { Manifests } from "./sync/Manifests.ts"
import * as SyncFlags from "./sync/SyncFlags.ts"
import * as SyncRoutes from "./sync/SyncRoutes.ts"
import { FileReads } from "./transfers/FileReads.ts"
import { Receiving } from "./transfers/Receiving.ts"
import { transferRoutes } from "./transfers/TransferRoutes.ts"
import { JoinedUploads } from "./transfers/JoinedUploads.ts"
import { UploadedFiles } from "./transfers/UploadedFiles.ts"
import { counted, openUploads } from "./TrafficMetrics.ts"
import { treeEndpoints, treeServices, treeSweep } from "./tree/TreeServices.ts"
import { uploadSweep } from "./uploads/FinishedUploads.ts"
import { tusRoutes } from "./uploads/TusRoutes.ts"
import { Uploads } from "./uploads/Uploads.ts"

/** Bytes, up and down. */
const transfers = Layer.mergeAll(FileReads.layer, Receiving.layer, JoinedUploads.layer).pipe(
  Layer.provideMerge(UploadedFiles.layer),
  Layer.provideMerge(Layer.mergeAll(RawServerUrl.layer, UploadLinks.layer, Uploads.layer))
)

const services = Layer.mergeAll(Archives.layer, CliLogins.layer, linkServices, Manifests.layer).pipe(
  Layer.provideMerge(transfers),
  Layer.provideMerge(Layer.mergeAll(SyncFlags.SyncFlags.layer)),
  Layer.provideMerge(Layer.mergeAll(Devices.layer)),
  Layer.provideMerge(DeviceDirectories.layer),
  Layer.provideMerge(treeServices)
)

const endpoints = HttpApiBuilder.layer(FilesRoomApi).pipe(
  Layer.provide([
    treeEndpoints,
    DevicesRoutes.layer,
    CliLoginRoutes.layer,
    SyncRoutes.layer,
    ShareLinksRoutes.layer
  ]),
  Layer.provide([DevicesRoutes.header, CliLoginRoutes.begins, CliLoginRoutes.sessionsOnly])
)

export const server: RoomServer = {
  served: Layer.mergeAll(
    endpoints,
    Layer.suspend(loginPage),
    RawServerUrl.listening,
    SyncFlags.sweeping,
    Sweep.layer("devices", "revoked_at"),
    roomDocumentRoute,
    treeSweep,
    linkSweep,
    uploadSweep,
    openUploads
  ).pipe(Layer.provide(services)),
  raw: Layer.mergeAll(
    RawRoutes.addRaw(counted(archiveRoutes)),
    RawRoutes.addRaw(counted(directRoutes)),
    RawRoutes.addRaw(counted(transferRoutes)),
    RawRoutes.addRaw(counted(tusRoutes)),
    RawRoutes.addRaw(counted(sendRoutes))
  ).pipe(Layer.provide(services)),
  paths: [
    ["GET", loginPath],
    ["GET", roomDocumentPath]
  ]
}
