import { HttpApi } from "effect/http-api"
import { FilesApi } from "#schemas/accounts/FilesApi.ts"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import type { Room } from "#src/Room.ts"
import { accounts as tables } from "./migrations/postgres/0001_Accounts.ts"
import { sessions } from "./migrations/postgres/0016_Sessions.ts"
import { fileBlobs } from "./migrations/postgres/0019_FileBlobs.ts"

/** Users, keys, files and health: every server has this room. */
export const accounts = {
  name: "accounts",
  needs: [],
  api: AccountsRoomApi,
  rawApi: HttpApi.make("signalbox").add(FilesApi),
  migrations: {
    postgres: [tables, sessions, fileBlobs],
    clickhouse: []
  },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"accounts">
