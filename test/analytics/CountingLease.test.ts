import { assert, describe, it, layer } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { CountingLease, instant, LeaseState } from "#src/analytics/counting/CountingLease.ts"
import { noteIds } from "#src/analytics/counting/CountedIds.ts"
import { highestEpoch, raise } from "#src/analytics/counting/Fence.ts"
import { LeaseKeeper } from "#src/analytics/counting/LeaseKeeper.ts"
import { makeCountingLeaseRow } from "#src/analytics/counting/CountingLeaseRow.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { limits } from "#src/Limits.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { sinkBatch, testLogId, view } from "./SinkBatches.ts"
import { visitsByDefinition, visitsInStore } from "./VisitOracle.ts"

/** Two logs, whose offsets begin at 0 both. */
const [firstLog, secondLog] = [testLogId, testLogId + 1n]

/** A sink whose process holds the lease in an epoch that `hold` changes. */
const sinkOf = Effect.gen(function* () {
  const state = new LeaseState(60_000)
  const sink = yield* EventSink.make().pipe(Effect.provideService(CountingLease, state))
  const clickhouse = yield* ClickHouse
  const hold = (epoch: number, uncheckedTo = 0) =>
    Effect.andThen(
      raise(clickhouse, epoch),
      Effect.sync(() => {
        state.become("counting")
        state.hold({ epoch, uncheckedTo, isShared: true })
      })
    )
  return { sink, state, hold }
})

describe("visits of two processes that count in turn", () => {
  it.effect("are those of the one that holds the lease: a late write of the other is refused", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* sinkOf, yield* sinkOf]
      yield* first.hold(1)
      yield* first.sink.write(sinkBatch([view(0), view(1, { visitor: 5n })], { logId: firstLog }))
      yield* second.hold(2)
      yield* second.sink.write(sinkBatch([view(2), view(50, { visitor: 6n })], { logId: secondLog }))
      const before = yield* visitsInStore()

      // It was frozen, and does not know yet that its time is over: its memory says that visitor 5 has one visit.
      const late = sinkBatch([view(3), view(90, { visitor: 5n })], { from: 2, logId: firstLog })
      const refused = yield* Effect.flip(first.sink.write(late))
      assert.strictEqual(refused._tag, "SinkUnavailable")
      assert.isTrue(first.state.isSuperseded(1))
      assert.deepStrictEqual(yield* visitsInStore(), before)

      // Its events are there, and are counted when it is its turn again, with those of the other.
      yield* first.hold(3)
      yield* first.sink.write(late)
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
      const clickhouse = yield* ClickHouse
      const [stored] = yield* clickhouse.query<{ n: number }>("SELECT toFloat64(count()) AS n FROM events")
      assert.strictEqual(stored?.n, 6)
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("leave out what another counted under the same id, while nobody knew of both", () =>
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const { hold, sink } = yield* sinkOf
      const withId = (event: StoredEvent, hash: bigint) => EventRecord.encode(event, hash).slice()
      const batchOf = (logId: bigint, records: ReadonlyArray<Uint8Array>): SinkBatch => {
        const given = sinkBatch(
          records.map((_, index) => view(index)),
          { logId }
        )
        return {
          ...given,
          records: given.records.map((record, index) => ({
            ...record,
            payload: records[index] ?? record.payload
          }))
        }
      }
      // ClickHouse forgets ids after two days by its own clock.
      const known = view(1, { received: Date.now() })
      yield* noteIds(clickhouse, batchOf(secondLog, [withId(known, 77n)]))
      yield* hold(1, 3)
      const batch = batchOf(firstLog, [withId(view(0), 76n), withId(view(1), 77n), withId(view(2), 0n)])
      yield* sink.write(batch)
      // As after a crash: left out events stay so.
      yield* sink.write({ ...batch, recovering: true })
      const rows = yield* clickhouse.query<{ seq: number }>("SELECT seq FROM events ORDER BY seq")
      assert.deepStrictEqual(
        rows.map(({ seq }) => Number(seq)),
        [0, 2]
      )
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
    }).pipe(Effect.provide(TestStores.layer))
  )
})

layer(TestStores.layer, { excludeTestServices: true })("the lease on counting", (it) => {
  const aDay = 86_400_000

  it.effect("is one process's, with an epoch of its own, until it is due or let go", () =>
    Effect.gen(function* () {
      const row = yield* makeCountingLeaseRow
      const sql = yield* SqlClient
      assert.deepStrictEqual(yield* row.take("a", aDay), { epoch: 1, waitMillis: 0 })
      assert.isUndefined(yield* row.take("b", aDay))
      assert.deepStrictEqual(yield* row.take("a", aDay), { epoch: 2, waitMillis: 0 }, "started again")
      assert.isUndefined(yield* row.renew("a", 1, aDay), "the run before")
      assert.deepStrictEqual(yield* row.renew("a", 2, aDay), { isWanted: false })
      yield* sql`UPDATE counting SET due = clock_timestamp()`
      // Postgres may have confirmed it a moment ago, by any clock.
      assert.deepStrictEqual(yield* row.take("b", 5_000), { epoch: 3, waitMillis: aDay })
      assert.isUndefined(yield* row.renew("a", 2, aDay))
      yield* row.release("b", 3)
      assert.deepStrictEqual(yield* row.take("a", aDay), { epoch: 4, waitMillis: 0 })
      yield* row.release("b", 3)
      assert.isUndefined(yield* row.take("b", aDay), "only its holder lets go of it")
      yield* row.release("a", 4)
    })
  )

  it.effect("goes to the process that asked for a turn", () =>
    Effect.gen(function* () {
      const row = yield* makeCountingLeaseRow
      const taken = yield* row.take("a", aDay)
      const epoch = taken?.epoch ?? 0
      yield* row.want("b", aDay)
      yield* row.want("c", aDay)
      assert.deepStrictEqual(yield* row.renew("a", epoch, aDay), { isWanted: true })
      yield* row.release("a", epoch)
      assert.isUndefined(yield* row.take("a", aDay))
      assert.isUndefined(yield* row.take("c", aDay))
      assert.deepStrictEqual(yield* row.take("b", aDay), { epoch: epoch + 1, waitMillis: 0 })
      assert.deepStrictEqual(yield* row.renew("b", epoch + 1, aDay), { isWanted: false })
      yield* row.release("b", epoch + 1)
    })
  )

  it.effect("is taken by one of many that try at once", () =>
    Effect.gen(function* () {
      const row = yield* makeCountingLeaseRow
      const tries = Array.from({ length: 20 }, (_, index) => row.take(`racer ${index}`, aDay))
      const taken = yield* Effect.all(tries, { concurrency: "unbounded" })
      assert.lengthOf(
        taken.filter((one) => one !== undefined),
        1
      )
      const sql = yield* SqlClient
      yield* sql`UPDATE counting SET holder = '', due = '-infinity'`
    })
  )

  it.effect("goes beyond the epochs that ClickHouse knows, where Postgres came from an older copy", () =>
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const row = yield* makeCountingLeaseRow
      yield* raise(clickhouse, 1_000)
      const state = new LeaseState(60_000)
      const keeper = new LeaseKeeper({
        state,
        row,
        clickhouse,
        limits,
        lastsMillis: 60_000,
        renewMillis: 100,
        isShared: true
      })
      const settled = yield* Deferred.make<void>()
      const counter = { holder: "restored", behind: () => 0, catchUp: Effect.void, nextOffset: () => 0 }
      const running = yield* Effect.forkChild(keeper.run(counter, settled))
      yield* Deferred.await(settled)
      assert.isTrue(state.isCounting())
      assert.deepInclude(yield* state.held, { epoch: 1_001 })
      assert.strictEqual(yield* highestEpoch(clickhouse), 1_001)
      assert.deepStrictEqual(yield* row.renew("restored", 1_001, 60_000), { isWanted: false })
      yield* Fiber.interrupt(running)
      yield* keeper.release
      assert.isFalse(state.isCounting())
      assert.deepInclude(yield* row.take("next", 1_000), { epoch: 1_002, waitMillis: 0 })
    })
  )
})

describe("a read", () => {
  const refusedBy = (exit: Exit.Exit<unknown, unknown>): unknown =>
    Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

  it.live("is refused where another counts, before it is made and after", () =>
    Effect.gen(function* () {
      const state = new LeaseState(60_000)
      let reads = 0
      const read = state.whileCounting(Effect.sync(() => void reads++))
      assert.deepInclude(refusedBy(yield* Effect.exit(read)), { _tag: "ServiceUnavailable", code: "standby" })
      assert.strictEqual(reads, 0)

      state.confirm(instant())
      state.hold({ epoch: 1, uncheckedTo: 0, isShared: true })
      state.become("counting")
      yield* read
      assert.strictEqual(reads, 1)
      // The lease was lost and taken again during the query: its answer may be of the time between.
      const lostMeanwhile = state.whileCounting(
        Effect.sync(() => {
          state.become("standby")
          state.hold({ epoch: 3, uncheckedTo: 0, isShared: true })
          state.become("counting")
        })
      )
      assert.deepInclude(refusedBy(yield* Effect.exit(lostMeanwhile)), { code: "standby" })
    })
  )

  it.live("waits, after a pause of the process, until the lease is confirmed", () =>
    Effect.gen(function* () {
      const state = new LeaseState(1_000)
      state.hold({ epoch: 1, uncheckedTo: 0, isShared: true })
      state.become("counting")
      const now = instant()
      // Each clock counts alone: a machine that slept, or one whose clock was set forward.
      for (const pause of ["monotonicMillis", "wallMillis"] as const) {
        state.confirm({ ...now, [pause]: now[pause] - 2_000 })
        assert.isFalse(state.isConfirmed())
      }
      const reading = yield* Effect.forkChild(state.whileCounting(Effect.succeed("figures")), {
        startImmediately: true
      })
      assert.isUndefined(reading.pollUnsafe())
      state.confirm(instant())
      assert.strictEqual(yield* Fiber.join(reading), "figures")
    })
  )
})
