import { writeSync } from "node:fs"
import { Cause, Effect, Exit, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { accounts } from "#src/accounts/Room.ts"
import { AppConfig } from "#src/Config.ts"
import * as Log from "#src/infra/telemetry/Log.ts"
import { notify } from "#src/notify/Room.ts"
import * as Server from "#src/Server.ts"
import { impatient, loopback } from "./DeliveryStage.ts"

/** A server of notifications that may speak to loopback, until it is killed. It writes its port out. */
export interface DeliveryServerOptions {
  readonly databaseUrl: string
  readonly dataDir: string
  readonly leaseMillis: number
  /** the origin of a sandbox of channels that runs alone */
  readonly sandbox?: string
  /** a request for updates waits so long; 2 s unless it is given */
  readonly pollMillis?: number
}

const {
  dataDir,
  databaseUrl,
  leaseMillis,
  pollMillis = 2_000,
  sandbox
}: DeliveryServerOptions = JSON.parse(process.argv[2] ?? "{}")

const config = AppConfig.layerOf({
  port: 0,
  dataDir,
  databaseUrl: Redacted.make(databaseUrl),
  rooms: new Set(["accounts", "notify"]),
  egressAllow: loopback,
  notifySandbox: sandbox === undefined ? "off" : { origin: sandbox },
  limits: {
    ...impatient,
    jobLeaseMillis: leaseMillis,
    digestEveryMillis: 100,
    ratePerMinute: 1_000_000,
    rateBurst: 1_000_000,
    telegramPollMillis: pollMillis,
    telegramPauseMillis: 200,
    telegramCodesPerHour: 1_000_000
  }
})

const told = Layer.effectDiscard(
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    writeSync(1, `${"port" in address ? address.port : 0}\n`)
  })
)

const served = Layer.launch(
  told.pipe(
    Layer.provide(Server.layerOf([accounts, notify])),
    Layer.provide(Log.layer("Warn", (line) => void writeSync(2, `${line}\n`))),
    Layer.provide(config)
  )
)

const stop = new AbortController()
process.once("SIGTERM", () => stop.abort())
const exit = await Effect.runPromiseExit(served, { signal: stop.signal })
if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause))
  writeSync(2, `${Cause.pretty(exit.cause)}\n`)
process.exit(stop.signal.aborted ? 0 : 1)
