import { setFlagsFromString } from "node:v8"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer } from "effect"
import { AppConfig } from "./Config.ts"
import { checkDataDirectory, checkHost } from "./infra/process/StartChecks.ts"
import * as Log from "./infra/telemetry/Log.ts"
import * as Otlp from "./infra/telemetry/Otlp.ts"
import { rooms } from "./Rooms.ts"
import * as Server from "./Server.ts"
import packageJson from "../package.json" with { type: "json" }
import { announce, exitWithCode, explainFailure, sayStarting, sayStopped } from "./Start.ts"

// V8 makes objects in the old generation at once where their like survived a while ago, as in the burst of a start. Those of
// short requests die there, and keep all that they refer to: a fifth of the main thread was spent on collecting them.
setFlagsFromString("--no-allocation-site-pretenuring")

const telemetry = Layer.unwrap(
  Effect.map(AppConfig, ({ logFormat, logLevel, otelEndpoint }) =>
    Otlp.layer({ endpoint: otelEndpoint, version: packageJson.version }).pipe(
      // Below, not beside: the collector is added to the loggers that it finds.
      Layer.provideMerge(Log.layer(logLevel, undefined, Log.formatOf(logFormat)))
    )
  )
)

const server = Effect.andThen(
  Effect.andThen(Effect.andThen(checkHost, checkDataDirectory), sayStarting),
  Effect.ensuring(Layer.launch(Layer.provide(announce, Server.layer)), sayStopped)
).pipe(Effect.provide(Layer.provideMerge(telemetry, AppConfig.layerFor(rooms))), explainFailure)

NodeRuntime.runMain(server, { disableErrorReporting: true, teardown: exitWithCode })
