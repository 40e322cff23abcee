import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { visitorRange } from "#src/analytics/store/VisitorDays.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { storedEvent } from "./Events.ts"
import { midnight, range, sinkBatch, storedSeqs, testLogId, view } from "./SinkBatches.ts"
import { unnamedPages, visitsByDefinition, visitsInStore } from "./VisitOracle.ts"

/**
 * A ClickHouse whose nth insert into a table fails: before it is done, after, or after it is done and a crash has taken
 * the rows (all of the table's) but not the memory of the token.
 */
const failing = (table: string, nth: number, when: "before" | "after" | "lost") =>
  Layer.effect(
    ClickHouse,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      let inserts = 0
      const insert: ClickHouseService["insert"] = (into, columns, body, options) => {
        const cut = Effect.fail(new ClickHouseUnavailable({ problem: `cut ${when}`, cause: undefined }))
        const done = clickhouse.insert(into, columns, body, options)
        if (into !== table || ++inserts !== nth) return done
        if (when === "before") return cut
        const lost = clickhouse.command(`DELETE FROM ${table} WHERE true`)
        return Effect.andThen(when === "lost" ? Effect.andThen(done, lost) : done, cut)
      }
      return { ...clickhouse, insert }
    })
  )

describe("the event sink", () => {
  it.effect("writes each event of a batch once, with its place in the log", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make()
      yield* sink.write(sinkBatch([view(0), view(1), view(2, { visitor: 5n })]))
      yield* sink.write(sinkBatch([view(3)], { from: 3 }))
      assert.deepStrictEqual(yield* storedSeqs, range(0, 4))
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
      assert.strictEqual(sink.stats().recomputed, 0)
    }).pipe(Effect.provide(TestStores.layer))
  )

  for (const table of ["events", "visits", "page_names"]) {
    for (const when of ["before", "after"] as const) {
      it.effect(
        `changes nothing when a batch is repeated after its insert into ${table} failed ${when} it was done`,
        () =>
          Effect.gen(function* () {
            const sink = yield* EventSink.make()
            yield* sink.write(sinkBatch([view(0), view(1, { visitor: 5n })]))
            const batch = sinkBatch(
              [view(2), view(90, { path: "/new" }), view(3, { visitor: 5n, kind: "event", name: "buy" })],
              {
                from: 2
              }
            )
            assert.strictEqual((yield* Effect.flip(sink.write(batch)))._tag, "SinkUnavailable")
            yield* sink.write(batch)
            assert.deepStrictEqual(yield* storedSeqs, range(0, 5))
            assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
            assert.deepStrictEqual(yield* unnamedPages(), [])
          }).pipe(Effect.provide(failing(table, 2, when).pipe(Layer.provideMerge(TestStores.layer))))
      )
    }
  }

  it.effect("writes a batch again whose token the store remembers and whose rows it lost", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make()
      const batch = sinkBatch([view(0), view(1), view(2)])
      assert.strictEqual((yield* Effect.flip(sink.write(batch)))._tag, "SinkUnavailable")
      assert.deepStrictEqual(yield* storedSeqs, [])
      yield* sink.write(batch)
      assert.deepStrictEqual(yield* storedSeqs, range(0, 3))
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
    }).pipe(Effect.provide(failing("events", 1, "lost").pipe(Layer.provideMerge(TestStores.layer))))
  )

  it.effect("writes only what is missing of a batch that a crash left in flight", () =>
    Effect.gen(function* () {
      const events = [view(0), view(1), view(2), view(60), view(61)]
      const before = yield* EventSink.make()
      yield* before.write(sinkBatch(events.slice(0, 2)))
      const after = yield* EventSink.make()
      yield* after.write(sinkBatch(events, { recovering: true }))
      yield* after.write(sinkBatch(events, { recovering: true }))
      assert.deepStrictEqual(yield* storedSeqs, range(0, 5))
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("takes back the visit that a late event joins to another", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make()
      yield* sink.write(sinkBatch([view(0), view(50)]))
      assert.strictEqual((yield* visitsInStore()).length, 2)
      yield* sink.write(sinkBatch([view(25)], { from: 2 }))
      assert.strictEqual((yield* visitsInStore()).length, 1)
      yield* sink.write(sinkBatch([view(-10 + 0.5, { ts: midnight })], { from: 3 }))
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
    }).pipe(Effect.provide(TestStores.layer))
  )

  for (const { name, restart, outage } of [
    { name: "in the next batch", restart: false, outage: false },
    { name: "when its batch is repeated after a failure", restart: false, outage: true },
    { name: "when its batch is repeated after a crash", restart: true, outage: true }
  ]) {
    const visits = outage ? failing("visits", 2, "before") : Layer.empty
    it.effect(`credits a ping from after midnight, or another address, to its page view: ${name}`, () =>
      Effect.gen(function* () {
        const sink = yield* EventSink.make()
        yield* sink.write(sinkBatch([view(23 * 60 + 50, { pv: "a" }), view(600, { pv: "b", visitor: 5n })]))
        const ping = (minutes: number, pv: string, visitor: bigint): StoredEvent =>
          view(minutes, {
            kind: "engage",
            pv,
            visitor,
            engagedMillis: 60_000,
            day: storedEvent().day + Math.floor(minutes / 1440)
          })
        const batch = sinkBatch([ping(24 * 60 + 5, "a", 9n), ping(601, "b", 6n), ping(602, "z", 5n)], {
          from: 2
        })
        if (outage) yield* Effect.flip(sink.write(batch))
        const next = restart ? yield* EventSink.make() : sink
        yield* next.write({ ...batch, recovering: restart })
        assert.deepStrictEqual(yield* storedSeqs, range(0, 5))
        const found = yield* visitsInStore()
        assert.deepStrictEqual(
          found.map(({ engaged_ms }) => engaged_ms),
          [60_000, 60_000]
        )
        assert.deepStrictEqual(found, yield* visitsByDefinition())
      }).pipe(Effect.provide(visits.pipe(Layer.provideMerge(TestStores.layer))))
    )
  }

  it.effect("credits a ping to its page view also when it does not remember the ping's sender", () =>
    Effect.gen(function* () {
      const nextDay = { day: storedEvent().day + 1 }
      const before = yield* EventSink.make()
      // The next day has begun, and the sender has been seen on it.
      yield* before.write(
        sinkBatch([view(1430, { pv: "a" }), view(1441, { ...nextDay, visitor: 9n, pv: "b" })])
      )
      const restarted = yield* EventSink.make()
      const ping = view(1445, {
        ...nextDay,
        kind: "engage",
        visitor: 9n,
        pv: "a",
        engagedMillis: 60_000
      })
      yield* restarted.write(sinkBatch([ping], { from: 2 }))
      const found = yield* visitsInStore()
      assert.deepStrictEqual(
        found.map(({ engaged_ms }) => engaged_ms),
        [60_000, 0]
      )
      assert.deepStrictEqual(found, yield* visitsByDefinition())
    }).pipe(Effect.provide(TestStores.layer))
  )

  for (const minutes of [
    // Each of these alone begins the visit elsewhere.
    [50, 40],
    // The first portion's fold finds the second's event, too, which is not late afterwards.
    [70, 80]
  ] as const) {
    it.effect(`leaves and doubles nothing when a crash's batch is taken in other portions: ${minutes}`, () =>
      Effect.gen(function* () {
        const before = yield* EventSink.make()
        yield* before.write(sinkBatch([view(60)]))
        // The events got there, the visits did not.
        const events = minutes.map((minute) => view(minute))
        const cut = yield* Effect.flip(before.write(sinkBatch(events, { from: 1 })))
        assert.strictEqual(cut._tag, "SinkUnavailable")
        const after = yield* EventSink.make()
        yield* after.write(sinkBatch(events.slice(0, 1), { from: 1, recovering: true }))
        yield* after.write(sinkBatch(events.slice(1), { from: 2, recovering: true }))
        const found = yield* visitsInStore()
        assert.deepStrictEqual(
          found.map(({ pageviews }) => pageviews),
          [3]
        )
        assert.deepStrictEqual(found, yield* visitsByDefinition())
      }).pipe(Effect.provide(failing("visits", 2, "before").pipe(Layer.provideMerge(TestStores.layer))))
    )
  }

  for (const { name, sql } of [
    { name: "lost", sql: "DELETE FROM long_visits WHERE part = 1" },
    {
      name: "older than it",
      sql: `INSERT INTO long_visits SELECT * REPLACE (engaged_ms + 7 AS engaged_ms, ver + 1 AS ver) FROM long_visits WHERE part = 1`
    },
    {
      name: "left of one that was taken back",
      sql: `INSERT INTO long_visits SELECT * REPLACE (toUInt32(7) AS part) FROM long_visits WHERE long_visits.part = 1`
    }
  ]) {
    it.effect(`writes a row of a long visit again whose copy is ${name}, as a crash may leave it`, () =>
      Effect.gen(function* () {
        const batch = sinkBatch([view(0), view(25), view(50), view(65), view(90)])
        yield* (yield* EventSink.make()).write(batch)
        assert.lengthOf(yield* visitsInStore(), 2)
        yield* (yield* ClickHouse).command(sql)
        assert.strictEqual((yield* Effect.exit(visitsInStore()))._tag, "Failure")
        yield* (yield* EventSink.make()).write({ ...batch, recovering: true })
        assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
      }).pipe(Effect.provide(TestStores.layer))
    )
  }

  it.effect("waits with a rebuild while a batch is half written, and then finds nothing to do", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make()
      yield* sink.write(sinkBatch([view(0)]))
      const batch = sinkBatch([view(1)], { from: 1 })
      yield* Effect.flip(sink.write(batch))
      const { day, site } = storedEvent()
      const check = sink.rebuild(visitorRange({ site, day }, {}), true)
      assert.strictEqual((yield* Effect.flip(check))._tag, "SinkUnavailable")
      yield* sink.write(batch)
      assert.deepInclude(yield* check, { events: 2, visits: 1, missing: 0, wrong: 0, surplus: 0 })
    }).pipe(Effect.provide(failing("visits", 2, "before").pipe(Layer.provideMerge(TestStores.layer))))
  )

  it.effect("takes a batch that reaches back to 1970", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make()
      const past = Array.from({ length: 112 }, (_, index) => {
        const ts = Date.UTC(1970, index * 6, 1, 12)
        return storedEvent({ ts, day: Math.floor(ts / 86_400_000) })
      })
      yield* sink.write(sinkBatch(past))
      assert.deepStrictEqual(yield* storedSeqs, range(0, past.length))
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("goes on after a restart, also with a new log, from what the store has", () =>
    Effect.gen(function* () {
      yield* (yield* EventSink.make()).write(sinkBatch([view(0), view(1)]))
      const restarted = yield* EventSink.make()
      yield* restarted.write(sinkBatch([view(2)], { logId: testLogId + 1n }))
      assert.strictEqual(restarted.stats().recomputed, 1)
      const [visit] = yield* visitsInStore()
      assert.strictEqual(visit?.pageviews, 3)
      assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
    }).pipe(Effect.provide(TestStores.layer))
  )
})
