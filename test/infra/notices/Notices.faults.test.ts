import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { AppConfig } from "#src/Config.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { anotherProcess, counterOf, isAt, processWith } from "./Processes.ts"

const live = { excludeTestServices: true } as const

const postgres = postgresWire()

/** Postgres at the end of the wire; the test's own connections do not pass it. */
const throughWire = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    return Layer.fresh(Postgres.layer).pipe(
      Layer.provide(Layer.succeed(AppConfig, { ...config, databaseUrl: Redacted.make(postgres.url()) }))
    )
  })
)

const impatient = {
  listenCheckMillis: 200,
  listenAnswerMillis: 300,
  noticeSendMillis: 500,
  noticeRetryMillis: 200
}

const cut = (way: "refuse" | "stall", millis: number) =>
  Effect.gen(function* () {
    yield* Effect.sync(() => postgres.breakWire(way))
    yield* Effect.sleep(millis)
    // Connections of the time before are gone for good, as after the restart of a machine.
    yield* Effect.sync(() => postgres.breakWire("refuse"))
    yield* Effect.sync(() => postgres.mend())
  })

const stores = TestStores.layerWith({}, postgres.beside)

layer(stores, live)("notices, while Postgres is away for a process", (it) => {
  for (const way of ["refuse", "stall"] as const) {
    it.effect(`(${way}) wake its own subscribers, and reach the others, and it them, when it is back`, () =>
      Effect.gen(function* () {
        const near = yield* anotherProcess
        const far = yield* Effect.provide(processWith(impatient), yield* Layer.build(throughWire))
        const [missed, sent] = [yield* counterOf(far, "missed"), yield* counterOf(near, "sent")]
        const own = yield* counterOf(far, "sent")
        const away = yield* Effect.forkChild(cut(way, 3_000))
        yield* Effect.sleep(200)
        yield* near.publish("missed")
        yield* far.publish("sent")
        assert.deepStrictEqual([own.count, sent.count, missed.count], [1, 0, 0])
        yield* Effect.sleep(1_000)
        assert.deepStrictEqual([sent.count, missed.count], [0, 0])
        yield* isAt(missed, 1)
        yield* isAt(sent, 1)
        assert.isDefined(away.pollUnsafe(), "not before the wire is mended")
        yield* near.publish("missed")
        yield* isAt(missed, 2)
      }).pipe(Effect.scoped)
    )
  }
  it.effect("find out by themselves that the connection is dead, and open another one", () =>
    Effect.gen(function* () {
      const far = yield* Effect.provide(processWith(impatient), yield* Layer.build(throughWire))
      const counter = yield* counterOf(far, "anything")
      yield* Effect.sync(() => postgres.breakWire("stall"))
      // The driver waits for so long for the end of a statement that was given up.
      yield* Effect.sleep(8_000)
      assert.strictEqual(counter.count, 0)
      yield* Effect.sync(() => postgres.mend())
      yield* isAt(counter, 1)
    }).pipe(Effect.scoped)
  )
})
