import { HttpApi } from "effect/http-api"
import { AttachmentsApi } from "#schemas/notify/AttachmentsApi.ts"
import { McpApi } from "#schemas/notify/McpApi.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { SendApi } from "#schemas/notify/SendApi.ts"
import type { Room } from "#src/Room.ts"
import { notify as tables } from "./migrations/postgres/0020_Notify.ts"
import { subscriptions } from "./migrations/postgres/0023_Subscriptions.ts"
import { holds } from "./migrations/postgres/0038_Holds.ts"
import { digests } from "./migrations/postgres/0039_Digests.ts"
import { telegram } from "./migrations/postgres/0040_Telegram.ts"

/** Notifications: messages to the subscribers of projects. */
export const notify = {
  name: "notify",
  needs: [],
  api: NotifyRoomApi,
  rawApi: HttpApi.make("signalbox").add(SendApi).add(McpApi).add(AttachmentsApi),
  migrations: { postgres: [tables, subscriptions, holds, digests, telegram], clickhouse: [] },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"notify">
