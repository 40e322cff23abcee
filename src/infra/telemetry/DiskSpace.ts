import { statfs } from "node:fs/promises"
import { Effect, Layer } from "effect"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"
import { AppConfig } from "#src/Config.ts"
import { type ComponentState, Readiness } from "./Readiness.ts"

/** Bytes that are free for this process; or why that is not known. */
type Space = { readonly freeBytes: number } | { readonly problem: string }

const mebibyte = 1024 * 1024

/**
 * The room left under DATA_DIR: on `/readyz` as `disk`, on `/metrics`, and in the log when it runs out and when there is
 * some again. The stores may lie on other disks: these speak for themselves.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { dataDir, limits } = yield* AppConfig
    const readiness = yield* Readiness
    let space = yield* spaceOf(dataDir)
    let wasFull = false
    const isFull = () => "freeBytes" in space && space.freeBytes < limits.diskFreeBytesMin
    const look = Effect.gen(function* () {
      space = yield* spaceOf(dataDir)
      if (isFull() === wasFull) return
      wasFull = !wasFull
      yield* Effect.annotateLogs(
        wasFull
          ? Effect.logWarning("The disk is full: events and changes are refused until there is room again")
          : Effect.logInfo("The disk has room again"),
        { dataDir, ...space }
      )
    })
    yield* readiness.register(
      "disk",
      Effect.map(look, () => stateOf(space, isFull()))
    )
    yield* SampledMetrics.register([
      [
        "signalbox_disk_free_bytes",
        "Bytes that are free where DATA_DIR is; -1 where that is not known",
        () => ("freeBytes" in space ? space.freeBytes : -1)
      ]
    ])
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(look, Effect.sleep(limits.diskCheckMillis))))
  })
)

const spaceOf = (directory: string): Effect.Effect<Space> =>
  Effect.tryPromise(() => statfs(directory)).pipe(
    Effect.map(({ bavail, bsize }): Space => ({ freeBytes: bavail * bsize })),
    Effect.catch(({ cause }) =>
      Effect.succeed<Space>({ problem: cause instanceof Error ? cause.message : String(cause) })
    )
  )

const stateOf = (space: Space, isFull: boolean): ComponentState => {
  if ("problem" in space)
    return { status: "degraded", detail: `the disk of DATA_DIR cannot be read: ${space.problem}` }
  if (!isFull) return { status: "up" }
  const free = (space.freeBytes / mebibyte).toFixed(1)
  return { status: "degraded", detail: `the disk of DATA_DIR is full: ${free} MiB are left` }
}
