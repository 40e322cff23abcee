import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Batcher from "#streams/kernel/Batcher.ts"
import { pauseMillis, type BatchPolicy } from "#streams/kernel/BatchPolicy.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { LogFiles } from "#streams/kernel/LogFiles.ts"
import { SinkRefused, SinkUnavailable, type SinkBatch } from "#streams/kernel/Sink.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { SimulatedDisk } from "./SimulatedDisk.ts"
import { appendTexts, texts } from "./TemporaryLog.ts"

const away = new SinkUnavailable({ problem: "it is away", cause: undefined })

/** A sink that does what the test says and remembers what it was given. */
class TestSink {
  readonly batches: Array<SinkBatch> = []
  behave: (batch: SinkBatch) => Effect.Effect<void, SinkUnavailable | SinkRefused> = () => Effect.void
  check: Effect.Effect<void, SinkUnavailable | SinkRefused> = Effect.void
  readonly write = (batch: SinkBatch): Effect.Effect<void, SinkUnavailable | SinkRefused> =>
    Effect.suspend(() => {
      this.batches.push(batch)
      return this.behave(batch)
    })

  ranges(): ReadonlyArray<string> {
    return this.batches.map((batch) => `${batch.from}-${batch.to}${batch.recovering ? " recovering" : ""}`)
  }
}

const policy: BatchPolicy = { maxRecords: 5, maxBytes: 1000, maxAgeMillis: 1000 }

interface Setting {
  readonly log: DurableLog.DurableLog
  readonly sink: TestSink
  readonly batcher: Batcher.Batcher
  readonly append: (
    count: number,
    length?: number
  ) => Effect.Effect<unknown, DurableLog.LogFull | DurableLog.LogUnavailable>
}

const options: DurableLog.LogOptions = { directory: "log", consumers: ["sink"] }

const start = Effect.fnUntraced(function* (sink: TestSink, overrides: Partial<Batcher.BatcherOptions> = {}) {
  const log = yield* DurableLog.open(options)
  const consumer = log.consumer("sink")
  const batcher = yield* Batcher.run({ name: "test", log, consumer, sink, policy, ...overrides })
  const append = (count: number, length = 3) =>
    appendTexts(
      log,
      Array.from({ length: count }, (_, index) => `${index}`.padEnd(length, "."))
    )
  const setting: Setting = { log, sink, batcher, append }
  return setting
})

/** A fresh disk without faults, a sink, and a batcher between them. */
const withBatcher = <A, E>(
  use: (setting: Setting) => Effect.Effect<A, E, Scope.Scope>,
  overrides: Partial<Batcher.BatcherOptions> = {}
) =>
  Effect.gen(function* () {
    const disk = new SimulatedDisk(new SeededRandom(1))
    return yield* Effect.scoped(Effect.flatMap(start(new TestSink(), overrides), use)).pipe(
      Effect.provideService(LogFiles, disk.mount())
    )
  })

const settled = TestClock.adjust(0).pipe(Effect.repeat({ times: 40 }))

describe("a batch goes out", () => {
  it.effect("when it has the most records allowed, and not before", () =>
    withBatcher(({ append, sink, batcher }) =>
      Effect.gen(function* () {
        yield* append(4)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), [])
        yield* append(3)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-5"])
        assert.strictEqual(batcher.stats().causes.count, 1)
        assert.strictEqual(batcher.stats().behind, 2)
      })
    )
  )

  it.effect("when it has the most bytes allowed, without the record that would go over", () =>
    withBatcher(({ append, sink, batcher }) =>
      Effect.gen(function* () {
        yield* append(3, 450)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-2"])
        yield* append(1, 5000)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-2", "2-3", "3-4"])
        assert.strictEqual(batcher.stats().causes.bytes, 3)
      })
    )
  )

  it.effect("when its first record has waited for the longest time allowed", () =>
    withBatcher(({ append, sink, batcher }) =>
      Effect.gen(function* () {
        yield* append(1)
        yield* TestClock.adjust(999)
        yield* append(1)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), [])
        yield* TestClock.adjust(1)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-2"])
        assert.strictEqual(batcher.stats().causes.age, 1)
      })
    )
  )

  it.effect("an age after the one before, however long that took to write", () =>
    withBatcher(({ append, sink }) =>
      Effect.gen(function* () {
        sink.behave = () => Effect.sleep(600)
        yield* append(1)
        yield* TestClock.adjust(1000)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-1"])
        yield* TestClock.adjust(200)
        yield* append(1)
        yield* TestClock.adjust(799)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-1"])
        yield* TestClock.adjust(1)
        yield* settled
        assert.deepStrictEqual(sink.ranges(), ["0-1", "1-2"])
        yield* TestClock.adjust(600)
      })
    )
  )

  it.effect("early while it has few records, also when they came during the write before", () =>
    withBatcher(
      ({ append, sink }) =>
        Effect.gen(function* () {
          yield* append(2)
          yield* TestClock.adjust(299)
          yield* settled
          assert.deepStrictEqual(sink.ranges(), [])
          sink.behave = () => Effect.sleep(200)
          yield* TestClock.adjust(1)
          yield* settled
          assert.deepStrictEqual(sink.ranges(), ["0-2"])
          yield* append(2)
          yield* TestClock.adjust(299)
          yield* settled
          assert.lengthOf(sink.batches, 1)
          yield* TestClock.adjust(1)
          yield* settled
          assert.deepStrictEqual(sink.ranges(), ["0-2", "2-4"])
          yield* append(3)
          yield* TestClock.adjust(999)
          yield* settled
          assert.lengthOf(sink.batches, 2, "three are not few")
          yield* TestClock.adjust(1)
          yield* settled
          assert.deepStrictEqual(sink.ranges(), ["0-2", "2-4", "4-7"])
          yield* TestClock.adjust(200)
        }),
      { policy: { ...policy, early: { ageMillis: 300, recordsMax: 2 } } }
    )
  )

  it.effect("at once when a reader waits for it, and the reader goes on when the sink has it", () =>
    withBatcher(({ append, sink, batcher, log }) =>
      Effect.gen(function* () {
        yield* append(2)
        yield* batcher.flushTo(1)
        assert.deepStrictEqual(sink.ranges(), ["0-2"])
        assert.strictEqual(batcher.stats().causes.demand, 1)
        assert.strictEqual(log.consumer("sink").committed(), 2)
        yield* batcher.flushTo(2)
        assert.lengthOf(sink.batches, 1)
      })
    )
  )

  it.effect("when the batcher closes, as long as the sink takes it", () =>
    Effect.gen(function* () {
      const disk = new SimulatedDisk(new SeededRandom(1))
      const outer = yield* Scope.make()
      const provided = Effect.provideService(LogFiles, disk.mount())
      const sink = new TestSink()
      const scope = yield* Scope.make()
      const log = yield* DurableLog.open(options).pipe(Scope.provide(outer), provided)
      const consumer = log.consumer("sink")
      const batcher = yield* Batcher.run({ name: "test", log, consumer, sink, policy }).pipe(
        Scope.provide(scope)
      )
      yield* appendTexts(log, ["a", "b"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(sink.ranges(), ["0-2"])
      assert.strictEqual(batcher.stats().causes.terminate, 1)
      assert.strictEqual(consumer.committed(), 2)
      yield* appendTexts(log, ["c"])
      assert.instanceOf(yield* Effect.flip(batcher.flushTo(3)), SinkUnavailable)
      const refusing = yield* Scope.make()
      sink.behave = () => Effect.fail(away)
      yield* Batcher.run({ name: "test", log, consumer, sink, policy }).pipe(Scope.provide(refusing))
      // The clock stands still: closing must not wait for a pause to end.
      yield* Scope.close(refusing, Exit.void)
      assert.deepStrictEqual(sink.ranges(), ["0-2", "2-3"])
      yield* Scope.close(outer, Exit.void)
    })
  )
})

describe("a sink that is away", () => {
  it.effect("gets the same batch again until it takes it, after growing pauses", () =>
    withBatcher(
      ({ append, sink, batcher }) =>
        Effect.gen(function* () {
          sink.behave = () => Effect.fail(away)
          yield* append(5)
          yield* settled
          yield* append(4)
          yield* TestClock.adjust(60_000).pipe(Effect.repeat({ times: 4 }))
          const attempts = sink.batches.length
          assert.isAbove(attempts, 3)
          assert.isBelow(attempts, 240 / 2.5 + 10, "pauses grow")
          assert.strictEqual(new Set(sink.batches.map((batch) => batch.token)).size, 1)
          assert.match(sink.batches[0]?.token ?? "", /^\d+:0-5$/)
          assert.strictEqual(
            new Set(sink.batches.map((batch) => batch.records)).size,
            1,
            "one batch in memory"
          )
          assert.strictEqual(batcher.stats().failuresInARow, attempts)
          sink.behave = () => Effect.void
          yield* TestClock.adjust(10_000)
          yield* settled
          assert.deepStrictEqual(sink.ranges().slice(-2), ["0-5", "5-9"])
          assert.strictEqual(batcher.stats().failuresInARow, 0)
          assert.strictEqual(batcher.stats().records, 9)
        }),
      { backoff: { baseMillis: 100, maxMillis: 5000 } }
    )
  )

  it.effect("fails readers promptly, those who wait and those who come", () =>
    withBatcher(({ append, sink, batcher }) =>
      Effect.gen(function* () {
        sink.behave = () => Effect.fail(away)
        yield* append(1)
        // No time passes.
        assert.strictEqual((yield* Effect.flip(batcher.flushTo(1))).problem, "it is away")
        const attempts = sink.batches.length
        assert.strictEqual((yield* Effect.flip(batcher.flushTo(1))).problem, "it is away")
        assert.lengthOf(sink.batches, attempts, "readers do not hammer it")
      })
    )
  )

  it.effect("may hang, or throw at whatever it is given: both count as away", () =>
    withBatcher(
      ({ append, sink, batcher }) =>
        Effect.gen(function* () {
          sink.behave = () => Effect.never
          yield* append(1)
          const reader = yield* Effect.forkChild(Effect.flip(batcher.flushTo(1)), { startImmediately: true })
          yield* settled
          yield* TestClock.adjust(2000)
          assert.include((yield* Fiber.join(reader)).problem, "did not answer in time")
          sink.behave = () => Effect.die(new Error("a bug"))
          yield* TestClock.adjust(10_000)
          yield* settled
          assert.match((yield* Effect.flip(batcher.flushTo(1))).problem, /no record beside.*: it threw$/)
          sink.behave = () => Effect.void
          yield* TestClock.adjust(10_000)
          yield* settled
          yield* batcher.flushTo(1)
        }),
      { writeTimeoutMillis: 2000 }
    )
  )

  it.effect("never makes a reader wait longer than the flush may take", () =>
    withBatcher(
      ({ append, sink, batcher }) =>
        Effect.gen(function* () {
          sink.behave = () => Effect.sleep(400)
          yield* append(50)
          const reader = yield* Effect.forkChild(Effect.flip(batcher.flushTo(50)), { startImmediately: true })
          for (let i = 0; i < 30; i++) yield* Effect.andThen(TestClock.adjust(50), settled)
          assert.include((yield* Fiber.join(reader)).problem, "behind by")
          assert.isBelow(sink.batches.length, 5)
          sink.behave = () => Effect.void
          yield* TestClock.adjust(400)
          yield* settled
        }),
      { flushTimeoutMillis: 1000 }
    )
  )
})

describe("after a crash", () => {
  it.effect("exactly what was in flight comes first, marked, and the rest unmarked", () =>
    Effect.gen(function* () {
      const disk = new SimulatedDisk(new SeededRandom(1))
      const crashed = yield* Scope.make()
      const sink = new TestSink()
      sink.behave = (batch) => (batch.from === 5 ? Effect.never : Effect.void)
      const first = yield* start(sink).pipe(
        Scope.provide(crashed),
        Effect.provideService(LogFiles, disk.mount())
      )
      yield* first.append(12)
      yield* settled
      assert.deepStrictEqual(sink.ranges(), ["0-5", "5-10"])
      disk.restartProcess()
      const after = new TestSink()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { batcher } = yield* start(after, { policy: { ...policy, maxRecords: 100 } })
          yield* batcher.flushTo(12)
          assert.deepStrictEqual(after.ranges(), ["5-10 recovering", "10-12"])
          assert.strictEqual(batcher.stats().causes.recovery, 1)
          assert.deepStrictEqual(texts(after.batches[1]?.records ?? []), ["10.", "11."])
        })
      ).pipe(Effect.provideService(LogFiles, disk.mount()))
    })
  )

  it.effect("a range larger than a batch stays marked in every part, through a second crash too", () =>
    Effect.gen(function* () {
      const disk = new SimulatedDisk(new SeededRandom(1))
      const small = { policy: { ...policy, maxRecords: 2 } }
      const lives = [new TestSink(), new TestSink(), new TestSink()]
      const [one, two, three] = lives as [TestSink, TestSink, TestSink]
      one.behave = () => Effect.never
      two.behave = (batch) => (batch.from === 2 ? Effect.never : Effect.void)
      for (const [sink, overrides] of [
        [one, {}],
        [two, small]
      ] as const) {
        const scope = yield* Scope.make()
        const { append } = yield* start(sink, overrides).pipe(
          Scope.provide(scope),
          Effect.provideService(LogFiles, disk.mount())
        )
        if (sink === one) yield* append(6)
        yield* settled
        disk.restartProcess()
      }
      assert.deepStrictEqual(one.ranges(), ["0-5"])
      assert.deepStrictEqual(two.ranges(), ["0-2 recovering", "2-4 recovering"])
      yield* Effect.scoped(Effect.flatMap(start(three, small), ({ batcher }) => batcher.flushTo(6))).pipe(
        Effect.provideService(LogFiles, disk.mount())
      )
      assert.deepStrictEqual(three.ranges(), ["2-4 recovering", "4-5 recovering", "5-6"])
    })
  )
})

describe("the pause between attempts", () => {
  it("doubles up to its limit, and is jittered between its half and its whole", () => {
    const backoff = { baseMillis: 100, maxMillis: 5000 }
    const whole = [1, 2, 3, 4, 5, 6, 7, 8, 1000].map((failures) => pauseMillis(backoff, failures, 1))
    assert.deepStrictEqual(whole, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000])
    assert.deepStrictEqual([pauseMillis(backoff, 1, 0), pauseMillis(backoff, 9, 0)], [50, 2500])
  })
})
