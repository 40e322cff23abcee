import { FilesRawApi } from "#schemas/files/FilesRawApi.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import type { Room } from "#src/Room.ts"
import { fileTree } from "./migrations/postgres/0025_FileTree.ts"
import { uploads } from "./migrations/postgres/0026_Uploads.ts"
import { shareLinks } from "./migrations/postgres/0027_ShareLinks.ts"
import { devices } from "./migrations/postgres/0028_Devices.ts"
import { fileWrites } from "./migrations/postgres/0031_FileWrites.ts"
import { uploadTries } from "./migrations/postgres/0032_UploadTries.ts"
import { fileCounts } from "./migrations/postgres/0033_FileCounts.ts"

/** Shared files: versions, links, archives, devices. */
export const files = {
  name: "files",
  needs: [],
  api: FilesRoomApi,
  rawApi: FilesRawApi,
  migrations: {
    postgres: [fileTree, uploads, shareLinks, devices, fileWrites, uploadTries, fileCounts],
    clickhouse: []
  },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"files">
