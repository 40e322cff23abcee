import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { EventIds } from "#src/analytics/ingest/EventIds.ts"
import { deadSites } from "#src/analytics/purges/PurgeLook.ts"
import { dropDeleted } from "#src/analytics/purges/RowDeletion.ts"
import { purgeSite } from "#src/analytics/purges/SitePurge.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { empty, fill, makeRow, purgedStores, stored, today, whole } from "./PurgedStores.ts"

layer(purgedStores, { excludeTestServices: true })("the purge of a site", (it) => {
  it.effect("leaves nothing of a deleted one, in either store and in files, and all of the others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const ids = yield* EventIds
      const gone = yield* makeRow({ deleted_at: new Date(), generation: 1 })
      const other = yield* makeRow()
      yield* fill([gone, `${gone}~1`, other], [today, today - 40, today - 400])
      for (const dataset of [gone, `${gone}~1`, other]) {
        ids.begin(dataset, [5n], Date.now()).settle(true)
        const site = dataset.slice(0, 25)
        for (const day of ["2026-11-20", "2026-11-21", "2026-11-22"])
          yield* sql`INSERT INTO drops (site, dataset, day, reason, count) VALUES (${site}, ${dataset}, ${day}, 'bot', 1)`
        for (const [name, root] of [
          ["a", null],
          ["b", "a"],
          ["c", "a"]
        ] as const)
          yield* sql`INSERT INTO imports (site, dataset, name, part_of) VALUES (${site}, ${dataset}, ${name}, ${root})`
      }
      assert.lengthOf((yield* stored(gone)).events, 2)

      assert.strictEqual(yield* purgeSite(gone), 0)
      assert.deepStrictEqual(yield* stored(gone), empty)
      const records = (site: string) =>
        Effect.map(
          sql<{ n: number }>`SELECT ((SELECT count(*) FROM drops WHERE site = ${site})
            + (SELECT count(*) FROM imports WHERE site = ${site}))::int AS n`,
          ([row]) => row?.n
        )
      assert.deepStrictEqual([yield* records(gone), yield* records(other)], [0, 6])
      assert.strictEqual(ids.look(gone, 5n, Date.now()), "new")
      assert.strictEqual(ids.look(other, 5n, Date.now()), "stored")
      const days = [today - 400, today - 40, today]
      assert.deepStrictEqual(yield* stored(other), whole("", days))
      const [row] = yield* sql<{ name: string; domain: string; secret: Uint8Array; purged: boolean }>`
        SELECT name, domain, visitor_secret AS secret, purged_at IS NOT NULL AS purged FROM sites WHERE id = ${gone}`
      assert.deepStrictEqual(
        { ...row, secret: row?.secret.length },
        {
          name: "",
          domain: "",
          secret: 0,
          purged: true
        }
      )

      // Again, and with rows that a log brings days later.
      assert.strictEqual(yield* purgeSite(gone), 0)
      assert.notInclude(yield* deadSites, gone)
      yield* fill([`${gone}~1`], [today])
      assert.include(yield* deadSites, gone)
      yield* purgeSite(gone)
      assert.deepStrictEqual(yield* stored(gone), empty)
    })
  )

  it.effect("deletes of one that was reset what came before, and no more", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const id = yield* makeRow({ generation: 2 })
      yield* fill([id, `${id}~1`, `${id}~2`], [today, today - 70])
      for (const dataset of [`${id}~1`, `${id}~2`])
        yield* sql`INSERT INTO drops (site, dataset, day, reason, count) VALUES (${id}, ${dataset}, '2026-11-20', 'bot', 1)`
      assert.include(yield* deadSites, id)
      yield* purgeSite(id)
      const days = [today - 70, today]
      assert.deepStrictEqual(yield* stored(id), whole("~2", days))
      const drops = yield* sql`SELECT dataset FROM drops WHERE site = ${id}`
      assert.deepStrictEqual(drops, [{ dataset: `${id}~2` }])
      assert.notInclude(yield* deadSites, id)
    })
  )

  it.effect("deletes the days before those that it keeps", () =>
    Effect.gen(function* () {
      const id = yield* makeRow({ retention_days: 30 })
      yield* fill([id], [today, today - 30, today - 31, today - 3_000])
      assert.include(yield* deadSites, id)
      yield* purgeSite(id)
      const days = [today - 30, today]
      assert.deepStrictEqual(yield* stored(id), whole("", days))
      assert.notInclude(yield* deadSites, id)
    })
  )

  it.effect("waits for a deletion that was begun before it", () =>
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const id = yield* makeRow({ deleted_at: new Date() })
      yield* fill([id], [today])
      const unwaited = { lightweight_deletes_sync: 0 }
      yield* clickhouse.command("SYSTEM STOP MERGES events")
      yield* clickhouse.command(`DELETE FROM events WHERE site = '${id}'`, {}, unwaited)
      const purging = yield* Effect.forkChild(purgeSite(id))
      yield* Effect.sleep(300)
      assert.lengthOf((yield* stored(id)).events, 1)
      assert.isUndefined(purging.pollUnsafe())
      yield* clickhouse.command("SYSTEM START MERGES events")
      while (purging.pollUnsafe() === undefined) yield* Effect.sleep(20)
      assert.deepStrictEqual(yield* stored(id), empty)
    })
  )

  it.effect("takes its rows from the disk in the end, a month of a table at a time", () =>
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const [gone, kept] = [yield* makeRow({ deleted_at: new Date() }), yield* makeRow()]
      yield* fill([gone, kept], [today, today - 40])
      for (const table of ["events", "visits", "long_visits", "page_names", "event_ids"])
        yield* clickhouse.command(`OPTIMIZE TABLE ${table} FINAL`)
      yield* purgeSite(gone)
      const masked = Effect.map(
        clickhouse.query<{ n: number }>(
          `SELECT toFloat64(count()) AS n FROM system.parts
          WHERE database = currentDatabase() AND active AND has_lightweight_delete`
        ),
        ([row]) => row?.n ?? 0
      )
      const before = yield* masked
      assert.isAtLeast(before, 5)
      assert.isTrue(yield* dropDeleted(clickhouse))
      assert.strictEqual(yield* masked, before - 1)
      while (yield* dropDeleted(clickhouse)) yield* Effect.yieldNow
      assert.strictEqual(yield* masked, 0)
      assert.lengthOf((yield* stored(kept)).events, 1)
      assert.deepStrictEqual(yield* stored(gone), empty)
    })
  )
})
