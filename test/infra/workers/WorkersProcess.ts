import { writeSync } from "node:fs"
import { Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { Workers } from "#src/infra/workers/Workers.ts"

/** A process with a worker's process, whose id it prints, and an endless job there. */
const program = Effect.gen(function* () {
  const { run } = yield* Workers
  const kind = {
    module: new URL("./TestJobs.ts", import.meta.url),
    isolation: "process",
    deadlineMillis: 3_600_000,
    memoryMegabytes: 64
  } as const
  const where = (yield* run({ kind, owner: "one", ask: { _tag: "Where" } })) as { readonly pid: number }
  writeSync(1, `${where.pid}\n`)
  yield* run({ kind, owner: "one", ask: { _tag: "Spin", millis: 3_600_000 } })
})

await Effect.runPromise(
  Effect.provide(
    program,
    Workers.layer.pipe(Layer.provide(AppConfig.layerOf({ limits: { workerProcesses: 1 } })))
  )
)
