import { writeSync } from "node:fs"
import { text } from "node:stream/consumers"
import { Cause, Effect, Exit, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { accounts } from "#src/accounts/Room.ts"
import { AppConfig } from "#src/Config.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import { mail } from "#src/mail/Room.ts"
import * as Server from "#src/Server.ts"
import { impatient, smtpServerAt } from "./RelayedServer.ts"

/** A server of mail, until it is killed. It starts when it has read these from its input, and writes its port out. */
export interface MailServerOptions {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly leaseMillis: number
  /** the port of the relay on this machine; null: the sandbox */
  readonly relayPort: number | null
  readonly onUnknown: "resend" | "hold"
}

const options: MailServerOptions = JSON.parse(await text(process.stdin))

const config = AppConfig.layerOf({
  port: 0,
  dataDir: options.dataDir,
  databaseUrl: Redacted.make(options.databaseUrl),
  rooms: new Set(["accounts", "mail"]),
  ...(options.relayPort !== null && { smtpServer: smtpServerAt({ port: options.relayPort }) }),
  mailOnUnknown: options.onUnknown,
  limits: {
    ...impatient,
    postgresConnectMillis: 60_000,
    jobLeaseMillis: options.leaseMillis,
    ratePerMinute: 1_000_000,
    rateBurst: 1_000_000,
    mailRatePerMinute: 1_000_000,
    mailPerDay: 1_000_000,
    mailSendMillis: 120_000
  }
})

const told = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    writeSync(1, `${"port" in address ? address.port : 0}\n`)
  })
)

const served = Layer.launch(
  told.pipe(
    Layer.provide(Server.layerOf([accounts, mail])),
    Layer.provide(Log.layer("Warn", (line) => void writeSync(2, `${line}\n`))),
    Layer.provide(config)
  )
)

const exit = await Effect.runPromiseExit(served)
if (Exit.isFailure(exit)) writeSync(2, `${Cause.pretty(exit.cause)}\n`)
process.exit(1)
