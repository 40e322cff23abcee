import { writeSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import * as Stores from "#src/Stores.ts"
import { limits } from "./DrainStage.ts"
import { drainTable, RunningDrain } from "./DrainTable.ts"

/** A process with one drain: appends records until it is killed, and writes each mark out once the log has it. */
export interface DrainProcessOptions {
  readonly name: string
  readonly databaseUrl: string
  readonly clickhouseUrl: string
  readonly dataDir: string
  /** of its marks */
  readonly prefix: string
}

const { clickhouseUrl, dataDir, databaseUrl, name, prefix }: DrainProcessOptions = JSON.parse(
  process.argv[2] ?? "{}"
)

/** Records on their way to the disk at once. */
const atOnce = 20

const program = Effect.gen(function* () {
  const { append } = yield* RunningDrain
  let count = 0
  const one = Effect.suspend(() => {
    const mark = `${prefix}${count++}`
    return Effect.andThen(append(mark), () => Effect.sync(() => writeSync(1, `${mark}.\n`)))
  })
  yield* Effect.forEach(
    Array.from({ length: atOnce }),
    () => Effect.forever(Effect.andThen(one, Effect.sleep(1))),
    {
      concurrency: "unbounded",
      discard: true
    }
  )
})

const config = AppConfig.layerOf({
  dataDir,
  databaseUrl: Redacted.make(databaseUrl),
  clickhouseUrl: Redacted.make(clickhouseUrl),
  limits
})

const drain = drainTable.find((found) => found.name === name)
if (drain === undefined) throw new Error(`no drain "${name}"`)

await Effect.runPromise(
  program.pipe(
    Effect.provide(
      drain.layer.pipe(
        Layer.provide(Quarantines.layer),
        Layer.provide(Readiness.layer),
        Layer.provide(Stores.layer),
        Layer.provide(config)
      )
    )
  )
)
