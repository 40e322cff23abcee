import { Cause, Effect, Exit, Layer, Predicate, type Runtime } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import { FirstBoot } from "./accounts/FirstBoot.ts"
import { Sessions } from "./accounts/sessions/Sessions.ts"
import { AppConfig } from "./Config.ts"
import * as Log from "./infra/telemetry/Log.ts"
import { Readiness } from "./infra/telemetry/Readiness.ts"
import type { Room } from "./Room.ts"
import { rooms as allRooms } from "./Rooms.ts"
import { serverUrl } from "./ServerUrl.ts"
import { mailOf, modelsOf, startMessage, startRecord } from "./StartMessage.ts"
import packageJson from "../package.json" with { type: "json" }

/**
 * A line printed at any log level: words where people read the log, else JSON like the rest of it. `json` replaces
 * words that must not be in it.
 */
const say = (words: string, json = Log.jsonLine(words.trim())) =>
  Effect.flatMap(AppConfig, ({ logFormat }) =>
    Effect.sync(() => process.stdout.write(`${Log.formatOf(logFormat) === "json" ? json : words}\n`))
  )

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** The first line printed: the version, the stores that its rooms need, and the place of the data. */
export const sayStarting = Effect.flatMap(AppConfig, ({ clickhouseUrl, dataDir, databaseUrl, rooms }) => {
  const postgres = databaseUrl === undefined ? "its own PostgreSQL" : "the PostgreSQL of DATABASE_URL"
  const clickhouse = clickhouseUrl === undefined ? "its own ClickHouse" : "the ClickHouse of CLICKHOUSE_URL"
  const served: ReadonlyArray<Room> = allRooms.filter(({ name }) => rooms.has(name))
  const isNeeded = served.some(({ needs }) => needs.includes("clickhouse"))
  const stores = isNeeded ? `${postgres} and ${clickhouse}` : postgres
  return say(`Signalbox ${packageJson.version} starts with ${stores}; data in ${dataDir}`)
})

/** Second sign of life: the stores answer and have today's schema. */
export const sayStoresReady = Effect.suspend(() =>
  say(`  stores ready after ${seconds(process.uptime() * 1000)}`)
)

/** It listened, and is being stopped: only then there is an end to tell. */
let isStopping = false

const sayStopping = Effect.suspend(() => {
  isStopping = true
  return say("Signalbox stops: requests under way come to their end, and the stores after them")
})

/** The last sign of life of a server that had started; a start that failed says why instead. */
export const sayStopped = Effect.suspend(() =>
  isStopping ? say("Signalbox has stopped; everything that it took is kept") : Effect.void
)

const proxyWithoutUrl =
  "unset: addresses for elsewhere name the host that the proxy was asked for; BASE_URL names one for all"

/** Once the server listens: writes where into admin.json, and shows a person how to begin. */
export const announce = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const { baseUrl, dataDir, rooms, trustProxy, upstreamUrl } = config
    const { announce } = yield* FirstBoot
    const url = yield* serverUrl
    const adminKey = yield* announce(url)
    // It is for the person who looks on, and ends before a log is read.
    const isWatched = adminKey._tag === "New" && process.stdout.isTTY === true
    const loginLink = isWatched
      ? `${url}/login#${(yield* (yield* Sessions).makeTicket(adminKey.userId)).ticket}`
      : undefined
    const elapsedMillis = process.uptime() * 1000
    const models = rooms.has("llm") ? modelsOf(upstreamUrl) : undefined
    const mail = rooms.has("mail") ? mailOf(config) : undefined
    const { version } = packageJson
    const readiness = yield* Readiness
    const analytics = yield* readiness.ask("analytics")
    const standby = analytics?.status === "standby" ? analytics.detail : undefined
    const channels = (yield* readiness.ask("channels"))?.detail
    const proxy = trustProxy !== 0 && baseUrl === undefined ? proxyWithoutUrl : undefined
    const came = { version, url, dataDir, adminKey, loginLink, elapsedMillis }
    const started = { ...came, models, hasNotify: rooms.has("notify"), mail, channels, standby, proxy }
    const { message, ...more } = startRecord(started)
    yield* say(startMessage(started), Log.jsonLine(message, more))
    yield* Effect.addFinalizer(() => sayStopping)
  })
)

/** Exit code of a start that failed for another reason than the configuration (78, from ConfigInvalid). */
const startFailedCode = 1

const failureOf = (cause: Cause.Cause<unknown>): unknown => cause.reasons.find(Cause.isFailReason)?.error

/** Why a start failed, for a person. A refusal of the system names its file; only a mistake of ours needs a trace. */
export const wordsOf = (cause: Cause.Cause<unknown>): string => {
  const failure = failureOf(cause)
  if (failure instanceof ServeError) {
    const problem = failure.cause instanceof Error ? failure.cause.message : String(failure.cause)
    return `${problem}: another process may have the port. PORT and HOST choose another`
  }
  if (Predicate.hasProperty(failure, "message")) return String(failure.message)
  const defect = Cause.squash(cause)
  return defect instanceof Error && "syscall" in defect ? defect.message : Cause.pretty(cause)
}

/** Says in plain words why the server could not start. */
export const explainFailure = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.tapCause(self, (cause) =>
    Effect.sync(() => {
      if (Cause.hasInterruptsOnly(cause)) return
      process.stderr.write(`Signalbox cannot start. ${wordsOf(cause)}\n`)
    })
  )

/** Ends the process with the error's own exit code. A stop that was asked for, by a signal, is a success. */
export const exitWithCode: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return onExit(0)
  const failure = failureOf(exit.cause)
  onExit(Predicate.hasProperty(failure, "exitCode") ? Number(failure.exitCode) : startFailedCode)
}
