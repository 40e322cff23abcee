import { HttpApi } from "effect/http-api"
import { ArchivesApi } from "#schemas/files/ArchivesApi.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { SendFilesApi } from "#schemas/files/SendApi.ts"
import { TransfersApi } from "#schemas/files/TransfersApi.ts"
import { UploadsApi } from "#schemas/files/UploadsApi.ts"
import type { Room } from "#src/Room.ts"
import { fileTree } from "./migrations/postgres/0025_FileTree.ts"
import { uploads } from "./migrations/postgres/0026_Uploads.ts"
import { shareLinks } from "./migrations/postgres/0027_ShareLinks.ts"
import { devices } from "./migrations/postgres/0028_Devices.ts"

/** Shared files: versions, links, archives, devices. */
export const files = {
  name: "files",
  needs: [],
  api: FilesRoomApi,
  rawApi: HttpApi.make("signalbox").add(TransfersApi).add(ArchivesApi).add(UploadsApi).add(SendFilesApi),
  migrations: { postgres: [fileTree, uploads, shareLinks, devices], clickhouse: [] },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"files">
