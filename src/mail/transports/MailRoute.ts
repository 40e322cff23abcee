import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { makeSandbox } from "./Sandbox.ts"
import type { Transport } from "./Transport.ts"

/** The way by which this server's mail leaves it: `MAIL_TRANSPORT`. */
export class MailRoute extends Context.Service<MailRoute, Transport>()("signalbox/mail/MailRoute") {
  static readonly layer = Layer.effect(
    MailRoute,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const sql = yield* SqlClient
      const tries = (id: string) =>
        Effect.map(
          Effect.orDie(sql<{ attempts: number }>`SELECT attempts FROM mail_deliveries WHERE id = ${id}`),
          ([row]) => row?.attempts ?? 0
        )
      return makeSandbox(tries, limits)
    })
  )
}
