import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AppConfig } from "#src/Config.ts"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import * as Stores from "#src/Stores.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { wireTo } from "#test/harness/ServerStores.ts"
import type { TcpProxy } from "#test/harness/TcpProxy.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { type DrainCase, RunningDrain, storedMarks } from "./DrainTable.ts"

/** The wires between the drains and their stores. */
export class Wires extends Context.Service<Wires, Readonly<Record<DrainCase["store"], TcpProxy>>>()(
  "signalbox/test/Wires"
) {}

/** Batches go out at once, and failures are repeated soon. */
export const limits = {
  batchAgeMillis: 20,
  batchWriteMillis: 2_000,
  settlementAgeMillis: 20,
  settlementWriteMillis: 2_000,
  requestCountFlushMillis: 50,
  retryMinMillis: 20,
  retryMaxMillis: 200,
  readFlushMillis: 1,
  readWaitMillis: 3_000,
  clickhouseWaitMillis: 60_000
}

const wired = (storeUrl: string, defaultPort: number) =>
  Effect.acquireRelease(
    Effect.promise(() => wireTo(storeUrl, defaultPort)),
    ({ wire }) => Effect.promise(wire.close)
  )

/** Stores at the ends of wires that a test can cut. */
export const stage = Layer.unwrap(
  Effect.gen(function* () {
    const { clickhouseUrl, dataDir, databaseUrl } = yield* TestStores
    const [postgres, clickhouse] = [yield* wired(databaseUrl, 5432), yield* wired(clickhouseUrl, 8123)]
    const config = {
      dataDir,
      databaseUrl: Redacted.make(postgres.url),
      clickhouseUrl: Redacted.make(clickhouse.url),
      limits
    }
    return Layer.mergeAll(
      Stores.layer,
      Quarantines.layer.pipe(Layer.provideMerge(Readiness.layer)),
      Layer.succeed(Wires, { postgres: postgres.wire, clickhouse: clickhouse.wire })
    ).pipe(Layer.provideMerge(AppConfig.layerOf(config)))
  })
).pipe(Layer.provideMerge(TestStores.layerEmpty))

export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-drain-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The drain over the logs in a directory, from its start to its end. */
export const running = <A, E, R>(
  one: DrainCase,
  dataDir: string,
  use: Effect.Effect<A, E, R | RunningDrain>
) =>
  Effect.provide(
    use,
    Layer.fresh(one.layer).pipe(
      Layer.provide(
        Layer.effect(
          AppConfig,
          Effect.map(AppConfig, (config) => ({ ...config, dataDir }))
        )
      )
    )
  )

/** The marks that are not in the store exactly once; none is right. */
export const notOnce = Effect.fnUntraced(function* (
  one: DrainCase,
  marks: ReadonlyArray<string>,
  prefix: string
) {
  const stored = yield* storedMarks(one, prefix)
  const wrong = marks
    .filter((mark) => stored.get(mark) !== 1)
    .map((mark) => `${mark}: ${stored.get(mark) ?? 0}`)
  const twice = Array.from(stored).filter(([, times]) => times > 1)
  return [...wrong, ...twice.map(([mark, times]) => `${mark}: ${times}`)]
})

/** The drain over logs of its own. */
export const inDrain = <A, E, R>(one: DrainCase, use: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.flatMap(temporaryDirectory, (dataDir) => running(one, dataDir, use)))

/** Marks that no other test has: in their order, all with the prefix. */
export const someMarks = Effect.fnUntraced(function* (one: DrainCase, count: number) {
  const prefix = `${one.name}${++tests}-`
  const marks = Array.from({ length: count }, (_, index) => `${prefix}${index}`)
  yield* one.prepare(marks)
  return { marks, prefix }
})
let tests = 0

export const appendAll = Effect.fnUntraced(function* (marks: ReadonlyArray<string>) {
  const { append } = yield* RunningDrain
  yield* Effect.forEach(marks, append, { concurrency: "unbounded", discard: true })
})

/** Readers are refused for as long as the drain pauses between two tries. */
export const flushed = eventually(
  "the store has what was appended",
  Effect.flatMap(RunningDrain, ({ flush }) => Effect.as(flush, true))
)

export const refusedFlush = Effect.flatMap(RunningDrain, ({ flush }) => Effect.flip(flush))

export const quarantineOf = ({ name }: DrainCase) =>
  Effect.map(Quarantines, ({ all }) => {
    const quarantine = all().get(name)
    if (quarantine === undefined) throw new Error(`no quarantine "${name}"`)
    return quarantine
  })

export const stateOf = (component: string) => Effect.flatMap(Readiness, ({ ask }) => ask(component))

/** Its store goes away amid what it is given, and comes back. `mute`: it does what it is told, and cannot say so. */
export const throughOutage = (one: DrainCase, way: "refuse" | "stall" | "mute") =>
  inDrain(
    one,
    Effect.gen(function* () {
      const { marks, prefix } = yield* someMarks(one, 30)
      const wire = (yield* Wires)[one.store]
      yield* appendAll(marks.slice(0, 10))
      yield* flushed
      yield* Effect.acquireRelease(
        Effect.sync(() => wire.breakWire(way)),
        () => Effect.sync(() => wire.mend())
      )
      yield* appendAll(marks.slice(10, 20))
      yield* refusedFlush
      yield* appendAll(marks.slice(20))
      // The answers that did not come never do.
      if (way === "mute") wire.breakWire("refuse")
      wire.mend()
      yield* flushed
      assert.deepStrictEqual(yield* notOnce(one, marks, prefix), [])
      assert.deepStrictEqual((yield* quarantineOf(one)).list(), [])
    }).pipe(Effect.scoped)
  )
