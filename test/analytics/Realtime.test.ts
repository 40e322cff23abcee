import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { eventLogConsumers, EventLog } from "#src/analytics/ingest/EventLog.ts"
import { Realtime } from "#src/analytics/reads/Realtime.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { dayOf } from "#streams/analytics/EventTime.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { storedEvent } from "./Events.ts"

/** Writes events as an earlier run of the server has left them. */
const insert = (events: ReadonlyArray<StoredEvent>) =>
  Effect.gen(function* () {
    const clickhouse = yield* ClickHouse
    const rows = events.map((event, index) => {
      const place = Buffer.alloc(16)
      place.writeBigUInt64LE(BigInt(index), 8)
      return Buffer.concat([place, EventRecord.rowOf(EventRecord.encode(event))])
    })
    const names = ["log_id", "seq", ...eventColumns.map(({ name }) => name)]
    yield* clickhouse.insert("events", names, rows, { format: "RowBinary" })
  })

layer(TestStores.layer, { excludeTestServices: true })("realtime figures after a start", (it) => {
  it.effect("are those of ClickHouse, once it has what the last run accepted, and of this run", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const view = (
        secondsAgo: number,
        visitor: bigint,
        path: string,
        more: Partial<StoredEvent> = {}
      ): StoredEvent => {
        const ts = now - secondsAgo * 1000
        return storedEvent({ ts, received: ts, day: dayOf(ts), visitor, path, ...more })
      }
      const { site } = storedEvent()
      yield* insert([
        view(10, 1n, "/"),
        view(20, 2n ** 64n - 1n, "/"),
        view(200, 1n, "/old"),
        view(1000, 3n, "/older"),
        view(2000, 4n, "/too-old"),
        view(5, 5n, "/", { kind: "engage" }),
        // Of this run: in the ring already.
        view(0, 6n, "/", { received: now + 60_000 })
      ])
      const directory = yield* temporaryDirectory
      const log = yield* DurableLog.open({ directory, consumers: Object.values(eventLogConsumers) })
      yield* log.appendEffect(EventRecord.encode(storedEvent()))
      const context = yield* Layer.build(Realtime.layer.pipe(Layer.provide(Layer.succeed(EventLog, log))))
      const ring = Effect.runSync(Effect.provide(Realtime, context))
      ring.add(view(0, 6n, "/"), now)
      assert.strictEqual(ring.snapshot(site, now).visitors, 1)
      yield* log.consumer(eventLogConsumers.clickHouse).commit(1)
      while (ring.snapshot(site, now).visitors < 3) yield* Effect.sleep(10)
      const { pages, pageviews, perMinute, visitors } = ring.snapshot(site, now)
      assert.deepStrictEqual(
        { pages, pageviews, visitors },
        {
          pages: [
            { path: "/", visitors: 3 },
            { path: "/old", visitors: 1 }
          ],
          pageviews: 4,
          visitors: 3
        }
      )
      assert.strictEqual(
        perMinute.reduce((sum, minute) => sum + minute.pageviews, 0),
        5
      )
    })
  )
})
