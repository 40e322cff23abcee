import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { encode as encodeImport } from "#streams/analytics/ImportRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { storedEvent } from "./Events.ts"
import { sinkBatch, testLogId } from "./SinkBatches.ts"
import { visitsByDefinition, visitsInStore } from "./VisitOracle.ts"

const dayMillis = 86_400_000
const today = Date.UTC(2026, 10, 21)

const view = (daysAgo: number, minutes: number, visitor = 1n): StoredEvent => {
  const ts = today - daysAgo * dayMillis + minutes * 60_000
  return storedEvent({ ts, received: today, day: Math.floor(ts / dayMillis), visitor })
}

/** Half a year, neighbours in the log months apart. */
const history = Array.from({ length: 60 }, (_, index) =>
  view((index * 31) % 180, index % 7, BigInt(index % 5))
)

const importBatch = (events: ReadonlyArray<StoredEvent>, options: { readonly recovering?: boolean } = {}) => {
  const batch = sinkBatch(events, { logId: testLogId + 1n, ...options })
  const records = batch.records.map((record) => ({
    ...record,
    payload: encodeImport({ name: "log", line: record.offset }, record.payload)
  }))
  return { ...batch, records } satisfies SinkBatch
}

const turns = { rows: 7, months: 1 }

/** The number of rows of each event in the store: `<log> <offset>`. */
const stored = Effect.gen(function* () {
  const clickhouse = yield* ClickHouse
  const rows = yield* clickhouse.query<{ log: string; place: string }>(
    "SELECT toString(log_id) AS log, toString(events.seq) AS place FROM events ORDER BY log_id, events.seq"
  )
  return rows.map(({ log, place }) => `${BigInt(log) - testLogId} ${place}`)
})

const expected = (live: number, imported: number): ReadonlyArray<string> => [
  ...Array.from({ length: live }, (_, seq) => `0 ${seq}`),
  ...Array.from({ length: imported }, (_, seq) => `1 ${seq}`)
]

/** A ClickHouse that notes the tokens of inserts into `events`, and of which some insert into a table fails. */
class NotedClickHouse {
  readonly tokens: Array<string> = []
  #failing: { readonly table: string; readonly when: "before" | "after"; nth: number } | undefined

  failAt(table: string, nth: number, when: "before" | "after"): void {
    this.#failing = { table, nth, when }
  }

  readonly layer = Layer.effect(
    ClickHouse,
    Effect.map(ClickHouse, (clickhouse): ClickHouseService => ({
      ...clickhouse,
      insert: (table, columns, body, options) => {
        if (table === "events") this.tokens.push(options.token ?? "")
        const done = clickhouse.insert(table, columns, body, options)
        if (this.#failing?.table !== table || --this.#failing.nth > 0) return done
        const cut = Effect.fail(new ClickHouseUnavailable({ problem: "cut", cause: undefined }))
        const { when } = this.#failing
        this.#failing = undefined
        return when === "before" ? cut : Effect.andThen(done, cut)
      }
    }))
  ).pipe(Layer.provideMerge(TestStores.layer))
}

const isRight = Effect.gen(function* () {
  assert.deepStrictEqual(yield* visitsInStore(), yield* visitsByDefinition())
})

describe("the lane of imports", () => {
  const noted = new NotedClickHouse()
  it.effect("is written month by month, and gives way to live events", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make({ importTurns: turns })
      const importing = yield* Effect.forkChild(sink.imports.write(importBatch(history)), {
        startImmediately: true
      })
      yield* sink.write(sinkBatch([view(0, 1, 9n), view(0, 2, 9n)]))
      const written = noted.tokens.length
      yield* Fiber.join(importing)
      // One turn was under way.
      assert.isAtMost(written, 2)
      assert.isAbove(noted.tokens.length, 8)
      assert.deepStrictEqual(yield* stored, expected(2, history.length))
      yield* isRight
    }).pipe(Effect.provide(noted.layer))
  )

  for (const table of ["events", "visits"]) {
    for (const when of ["before", "after"] as const) {
      const faulty = new NotedClickHouse()
      it.effect(
        `has each event once when an insert into ${table} failed ${when} it was done amid a batch`,
        () =>
          Effect.gen(function* () {
            const sink = yield* EventSink.make({ importTurns: turns })
            const batch = importBatch(history)
            faulty.failAt(table, 4, when)
            assert.strictEqual((yield* Effect.flip(sink.imports.write(batch)))._tag, "SinkUnavailable")
            // Visits are rightly behind now, and live ones of the same people come in between.
            yield* sink.write(sinkBatch([view(31, 3, 1n), view(0, 3, 0n)]))
            const before = faulty.tokens.length
            yield* sink.imports.write(batch)
            assert.isBelow(faulty.tokens.length - before, before + 20)
            assert.deepStrictEqual(yield* stored, expected(2, history.length))
            yield* isRight
          }).pipe(Effect.provide(faulty.layer))
      )
    }
  }

  const crashed = new NotedClickHouse()
  it.effect("has each event once after a crash amid a batch, in other portions too", () =>
    Effect.gen(function* () {
      crashed.failAt("visits", 3, "before")
      const before = yield* EventSink.make({ importTurns: turns })
      yield* Effect.flip(before.imports.write(importBatch(history)))
      const after = yield* EventSink.make({ importTurns: { rows: 11, months: 2 } })
      yield* after.imports.write(importBatch(history, { recovering: true }))
      assert.deepStrictEqual(yield* stored, expected(0, history.length))
      yield* isRight
    }).pipe(Effect.provide(crashed.layer))
  )

  it.effect("shares the days of people whom both lanes know", () =>
    Effect.gen(function* () {
      const sink = yield* EventSink.make({ importTurns: turns })
      yield* sink.write(sinkBatch([view(0, 10), view(0, 50)]))
      yield* sink.imports.write(importBatch([view(0, 55), view(0, 60)]))
      yield* sink.write(sinkBatch([view(0, 65), view(0, 30, 2n)], { from: 2 }))
      yield* sink.imports.write({ ...importBatch([view(0, 20), view(0, 25, 2n)]), ...shifted(2) })
      yield* sink.write(sinkBatch([view(0, 70), view(0, 40, 2n)], { from: 4 }))
      assert.lengthOf(yield* stored, 10)
      yield* isRight
    }).pipe(Effect.provide(TestStores.layer))
  )
})

/** The second of two batches of two. */
const shifted = (from: number): Pick<SinkBatch, "from" | "to" | "token" | "records"> => {
  const { records } = importBatch([view(0, 20), view(0, 25, 2n)])
  return {
    from,
    to: from + records.length,
    token: `${testLogId + 1n}:${from}-${from + records.length}`,
    records: records.map((record) => ({ ...record, offset: record.offset + from }))
  }
}
