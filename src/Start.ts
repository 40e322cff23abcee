import { Cause, Effect, Layer, Predicate } from "effect"
import { HttpServer } from "effect/http"
import { FirstBoot } from "./accounts/FirstBoot.ts"
import { AppConfig } from "./Config.ts"
import { startMessage } from "./StartMessage.ts"
import packageJson from "../package.json" with { type: "json" }

/** Once the server listens: writes where into admin.json, and shows a person how to begin. */
export const announce = Layer.effectDiscard(
  Effect.gen(function* () {
    const { baseUrl, dataDir, host } = yield* AppConfig
    const { announce, newAdminKey } = yield* FirstBoot
    const { address } = yield* HttpServer.HttpServer
    const port = Predicate.hasProperty(address, "port") ? address.port : undefined
    const name = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host
    const url = baseUrl ?? `http://${name}:${String(port)}`
    yield* announce(url)
    const elapsedMillis = process.uptime() * 1000
    const message = startMessage({ version: packageJson.version, url, dataDir, newAdminKey, elapsedMillis })
    yield* Effect.sync(() => process.stdout.write(`${message}\n`))
  })
)

/** Exit code of a start that failed for another reason than the configuration (78, from ConfigInvalid). */
const startFailedCode = 1

/** Says in plain words why the server could not start, and ends the process with the error's own exit code. */
export const explainFailure = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.tapCause(self, (cause) =>
    Effect.sync(() => {
      if (Cause.hasInterruptsOnly(cause)) return
      const failure = cause.reasons.find(Cause.isFailReason)?.error
      const words = Predicate.hasProperty(failure, "message") ? String(failure.message) : Cause.pretty(cause)
      process.stderr.write(`Signalbox cannot start. ${words}\n`)
      const code = Predicate.hasProperty(failure, "exitCode") ? Number(failure.exitCode) : startFailedCode
      process.exitCode = code
    })
  )
