import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { CountingLease, LeaseState } from "#src/analytics/counting/CountingLease.ts"
import { raise } from "#src/analytics/counting/Fence.ts"
import { visitorRange } from "#src/analytics/store/VisitorDays.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { storedEvent } from "./Events.ts"
import { sinkBatch, storedSeqs, testLogId } from "./SinkBatches.ts"
import { assertStored, stage, views } from "./SinkThreadStage.ts"

describe("the event sink in its thread", () => {
  it.live("starts with the first batch, writes events and visits, and tells sites and figures", () =>
    Effect.gen(function* () {
      const { sink, sites, threads } = yield* stage
      assert.lengthOf(threads, 0)
      yield* sink.write(sinkBatch(views(0, 7)))
      yield* sink.write(sinkBatch(views(7, 9), { from: 7 }))
      yield* sink.check
      yield* assertStored(9)
      assert.lengthOf(threads, 1)
      assert.deepStrictEqual(sites, [storedEvent().site, storedEvent().site])
      assert.deepInclude(sink.stats(), { events: 9, resident: 5, recomputed: 0 })
      const { day, site } = storedEvent()
      assert.deepInclude(yield* sink.rebuild(visitorRange({ site, day }, {}), false), { events: 9, wrong: 0 })
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.live("takes imports beside live events", () =>
    Effect.gen(function* () {
      const { sink } = yield* stage
      const imported = { logId: testLogId + 1n }
      yield* Effect.all(
        [
          sink.write(sinkBatch(views(0, 50))),
          sink.imports.check,
          sink.write(sinkBatch(views(50, 60), { from: 50, ...imported }))
        ],
        { concurrency: "unbounded" }
      )
      yield* assertStored(60)
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.live("says why ClickHouse does not take a batch, and takes it afterwards", () =>
    Effect.gen(function* () {
      const { sink } = yield* stage
      const clickhouse = yield* ClickHouse
      yield* clickhouse.command("RENAME TABLE visits TO visits_elsewhere")
      const refused = yield* Effect.flip(sink.write(sinkBatch(views(0, 3))))
      assert.strictEqual(refused._tag, "SinkRefused")
      assert.include(refused.problem, "visits")
      assert.strictEqual((yield* Effect.flip(sink.check))._tag, "SinkRefused")
      yield* clickhouse.command("RENAME TABLE visits_elsewhere TO visits")
      yield* sink.write(sinkBatch(views(0, 3), { recovering: true }))
      yield* assertStored(3)
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.live("waits for the lease on counting, and hears that another process counts", () =>
    Effect.gen(function* () {
      const state = new LeaseState(60_000)
      const { sink } = yield* Effect.provideService(stage, CountingLease, state)
      const clickhouse = yield* ClickHouse
      const write = yield* Effect.forkChild(sink.write(sinkBatch(views(0, 3))))
      yield* raise(clickhouse, 1)
      assert.deepStrictEqual(yield* storedSeqs, [])
      state.become("counting")
      state.hold({ epoch: 1, uncheckedTo: 0, isShared: true })
      yield* Fiber.join(write)
      yield* raise(clickhouse, 2)
      const refused = yield* Effect.flip(sink.write(sinkBatch(views(3, 6), { from: 3 })))
      assert.instanceOf(refused, SinkUnavailable)
      assert.include(refused.problem, "another process counts")
      assert.isTrue(state.isSuperseded(1))
      state.hold({ epoch: 2, uncheckedTo: 0, isShared: true })
      yield* sink.write(sinkBatch(views(3, 6), { from: 3 }))
      yield* assertStored(6)
    }).pipe(Effect.provide(TestStores.layer))
  )
})
