import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { deadRows, type PurgedSite } from "#src/analytics/purges/DeadRows.ts"
import { deadSites, forgetPurged } from "#src/analytics/purges/PurgeLook.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { empty, fill, makeRow, purgedStores, stored, today, whole } from "./PurgedStores.ts"

/** The rows that a purge of the site leaves. */
const left = (site: PurgedSite) => {
  const of = (table: Parameters<typeof deadRows>[1]) => deadRows(site, table, Date.now())
  return stored(site.id, {
    events: of("events"),
    visits: of("visits"),
    long_visits: of("long_visits"),
    page_names: of("page_names"),
    event_ids: of("event_ids")
  })
}

layer(purgedStores, { excludeTestServices: true })("rows that are dead", (it) => {
  it.effect("are all of a deleted site, of each dataset", () =>
    Effect.gen(function* () {
      const id = yield* makeRow()
      yield* fill([id, `${id}~1`, `${id}~12`], [today, today - 1])
      const site = { id, dataset: `${id}~12`, isDeleted: true, retentionDays: 30 }
      assert.deepStrictEqual(yield* left(site), empty)
    })
  )

  it.effect("are of a site that was reset those before, and those of days that it does not keep", () =>
    Effect.gen(function* () {
      const id = yield* makeRow()
      yield* fill([id, `${id}~1`, `${id}~2`], [today, today - 3, today - 4])
      const site = { id, dataset: `${id}~2`, isDeleted: false, retentionDays: null }
      const days = [today - 4, today - 3, today]
      assert.deepStrictEqual(yield* left(site), whole("~2", days))
      assert.deepStrictEqual(yield* left({ ...site, retentionDays: 3 }), whole("~2", days.slice(1)))
      assert.deepStrictEqual(yield* left({ ...site, dataset: id, retentionDays: 1 }), whole("", [today]))
    })
  )

  it.effect("are found wherever they come from: of sites deleted by earlier versions, of logs, of age", () =>
    Effect.gen(function* () {
      const old = new Date(Date.now() - 10 * 86_400_000)
      const dead = {
        early: yield* makeRow({ deleted_at: old }),
        late: yield* makeRow({ deleted_at: old, purged_at: old }),
        reset: yield* makeRow({ generation: 2 }),
        aged: yield* makeRow({ retention_days: 2 })
      }
      const alive = {
        kept: yield* makeRow(),
        again: yield* makeRow({ generation: 1 }),
        young: yield* makeRow({ retention_days: 3 }),
        purged: yield* makeRow({ deleted_at: old, purged_at: old }),
        // Stores that do not belong together must not cost anyone their figures.
        unknown: newId("st")
      }
      const datasets = [dead.late, `${dead.reset}~1`, dead.aged, alive.kept, `${alive.again}~1`, alive.young]
      yield* fill([...datasets, alive.unknown], [today, today - 3])
      const found = new Set(yield* deadSites)
      const names = (sites: Record<string, string>) =>
        Object.keys(sites).filter((name) => found.has(sites[name] ?? ""))
      assert.deepStrictEqual(names(dead), ["early", "late", "reset", "aged"])
      assert.deepStrictEqual(names(alive), [])
    })
  )

  it.effect("are known to be a deleted site's for 400 days", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const ids: Array<string> = []
      for (const days of [399, 401]) {
        const at = new Date(Date.now() - days * 86_400_000)
        ids.push(yield* makeRow({ deleted_at: at, purged_at: at }))
      }
      yield* forgetPurged
      const rows = yield* sql`SELECT id FROM sites WHERE id = ANY(${ids}::text[])`
      assert.deepStrictEqual(rows, [{ id: ids[0] }])
    })
  )
})
