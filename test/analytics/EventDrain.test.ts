import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { encode } from "#streams/analytics/EventRecord.ts"
import { EventDrain } from "#src/analytics/store/EventDrain.ts"
import { EventLog, ImportLog } from "#src/analytics/ingest/EventLog.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { FirstEvents } from "#src/analytics/store/FirstEvents.ts"
import { SiteDirectory } from "#src/analytics/sites/Sites.ts"
import { Sites } from "#src/analytics/sites/Sites.ts"
import { Stats } from "#src/analytics/reads/Stats.ts"
import type { Limits } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { switchedBy } from "#test/infra/clickhouse/SwitchedClickHouse.ts"
import { offeredPurges } from "./OfferedPurges.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { storedEvent } from "./Events.ts"

const outage = { isAway: false, isStuck: false }

/** In this thread, which the outage is in. */
const sinkHere = Layer.effect(
  EventSink.EventSink,
  Effect.flatMap(FirstEvents, ({ note }) => EventSink.make({ onStored: note }))
)

const roomWith = (limits: Partial<Limits>) =>
  Layer.mergeAll(Stats.layer, Sites.layer.pipe(Layer.provide(offeredPurges))).pipe(
    Layer.provideMerge(EventDrain.layer),
    Layer.provideMerge(sinkHere),
    Layer.provideMerge(FirstEvents.layer),
    Layer.provideMerge(Layer.merge(EventLog.layer, ImportLog.layer)),
    Layer.provideMerge(SiteDirectory.layer),
    Layer.provideMerge(switchedBy(outage)),
    Layer.provideMerge(TestStores.layerWith({ limits }))
  )

const room = roomWith({ batchWriteMillis: 3_000 })

const owner = "usr_0000000000000000000001"

const makeSite = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`INSERT INTO users ${sql.insert({ id: owner, email: "a@b.example", name: "A", role: "user" })}
    ON CONFLICT DO NOTHING`
  const { site } = yield* (yield* Sites).create(owner, { name: "Blog", domain: "example.org" })
  return site
})

const accept = Effect.fnUntraced(function* (site: string, visitors: number) {
  const log = yield* EventLog
  const now = Date.now()
  for (let visitor = 0; visitor < visitors; visitor++) {
    const day = Math.floor(now / 86_400_000)
    yield* log.appendEffect(
      encode(storedEvent({ site, ts: now, received: now, day, visitor: BigInt(visitor) }))
    )
  }
})

describe("the drain", () => {
  layer(room, { excludeTestServices: true })((it) => {
    it.effect("shows a reader what was accepted before, without waiting for a batch to fill", () =>
      Effect.gen(function* () {
        const site = yield* makeSite
        const stats = yield* Stats
        for (const total of [3, 6, 9]) {
          yield* accept(site.id, 3)
          const found = yield* stats.ofSite(site, { period: "today" })
          assert.deepStrictEqual([found.summary.pageviews, found.summary.visitors], [total, 3])
        }
      })
    )

    it.effect("notes when the site's first event was", () =>
      Effect.gen(function* () {
        const site = yield* makeSite
        const sites = yield* Sites
        const before = Date.now()
        yield* accept(site.id, 1)
        yield* (yield* EventDrain).flush(site.id)
        const noted = yield* Effect.suspend(() => sites.find(site.id, owner)).pipe(
          Effect.repeat({
            until: ({ firstEventAt }) => firstEventAt !== null,
            schedule: Schedule.spaced(20)
          })
        )
        assert.isAtLeast(noted.firstEventAt?.getTime() ?? 0, before)
      })
    )

    it.effect("keeps no reader of a site waiting for what other sites have on their way", () =>
      Effect.gen(function* () {
        const [busy, quiet] = [yield* makeSite, yield* makeSite]
        const stats = yield* Stats
        yield* accept(quiet.id, 2)
        yield* stats.ofSite(quiet, { period: "today" })
        outage.isStuck = true
        yield* accept(busy.id, 1)
        const reader = yield* Effect.forkChild(Effect.exit(stats.ofSite(busy, { period: "today" })))
        yield* eventually(
          "the batch hangs",
          Effect.sync(() => !outage.isStuck)
        )
        const found = yield* stats.ofSite(quiet, { period: "today" })
        assert.strictEqual(found.summary.pageviews, 2)
        yield* Fiber.interrupt(reader)
      })
    )
  })
  layer(roomWith({ batchWriteMillis: 600_000, readWaitMillis: 500 }), { excludeTestServices: true })((it) => {
    it.effect("lets a reader see what is there where its store is behind", () =>
      Effect.gen(function* () {
        const site = yield* makeSite
        const stats = yield* Stats
        const pageviews = Effect.map(
          stats.ofSite(site, { period: "today" }),
          ({ summary }) => summary.pageviews
        )
        yield* accept(site.id, 2)
        yield* eventually(
          "the first are shown",
          Effect.map(pageviews, (shown) => shown === 2)
        )
        outage.isStuck = true
        yield* accept(site.id, 3)
        assert.strictEqual(yield* pageviews, 2)
        const refused = yield* Effect.flip((yield* EventDrain).flush(site.id))
        assert.strictEqual(refused.reason, "behind")
      })
    )
  })
})
