import { HttpApi } from "effect/http-api"
import { MailRoomApi } from "#schemas/mail/MailRoomApi.ts"
import { SendMailApi } from "#schemas/mail/SendMailApi.ts"
import type { Room } from "#src/Room.ts"
import { mail as tables } from "./migrations/postgres/0034_Mail.ts"
import { suppressions } from "./migrations/postgres/0035_MailSuppressions.ts"
import { mailBounces } from "./migrations/postgres/0037_MailBounces.ts"
import { mailDomains } from "./migrations/postgres/0036_MailDomains.ts"

/** Mail: messages to addresses, and what became of each. */
export const mail = {
  name: "mail",
  needs: [],
  api: MailRoomApi,
  rawApi: HttpApi.make("signalbox").add(SendMailApi),
  migrations: { postgres: [tables, suppressions, mailDomains, mailBounces], clickhouse: [] },
  commands: async () => (await import("./cli/Commands.ts")).commands,
  server: async () => (await import("./Server.ts")).server
} as const satisfies Room<"mail">
