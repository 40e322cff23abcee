import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { EventIds } from "#src/analytics/ingest/EventIds.ts"
import { EventLog } from "#src/analytics/ingest/EventLog.ts"
import { SiteDirectory } from "#src/analytics/sites/Sites.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { hashOf, newId } from "#src/infra/crypto/Tokens.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** All that a purge needs, without pauses. */
export const purgedStores = EventIds.layer.pipe(
  Layer.provideMerge(Layer.merge(EventLog.layer, SiteDirectory.layer)),
  Layer.provideMerge(
    TestStores.layerWith({ limits: { purgeSettleMillis: 0, purgeRestMillis: 0, purgeRows: 2 } })
  )
)

/** in days since 1970-01-01, UTC */
export const today = Math.floor(Date.now() / 86_400_000)

interface SiteFields {
  readonly retention_days?: number
  readonly generation?: number
  readonly deleted_at?: Date
  readonly purged_at?: Date
}

/** Makes a row of `sites`; answers its id. */
export const makeRow = (fields: SiteFields = {}) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const user = { id: "usr_0000000000000000000001", email: "a@b.example", name: "A", role: "user" }
    yield* sql`INSERT INTO users ${sql.insert(user)} ON CONFLICT DO NOTHING`
    const id = newId("st")
    const secrets = { secret_prefix: "ssk_", secret_hash: hashOf(id), visitor_secret: new Uint8Array(32) }
    yield* sql`INSERT INTO sites ${sql.insert({ id, user_id: user.id, name: "S", domain: "a.example", ...secrets, ...fields })}`
    yield* (yield* SiteDirectory).refreshNow
    return id
  })

/** Stores an event, a visit (one of several rows) and a page of each dataset on each day, and an id of today. */
export const fill = (datasets: ReadonlyArray<string>, days: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const clickhouse = yield* ClickHouse
    const names = `arrayJoin([${datasets.map((dataset) => `'${dataset}'`).join(", ")}])`
    const each = `(SELECT ${names} AS name, arrayJoin([${days.join(", ")}]) AS number)`
    yield* clickhouse.command(`INSERT INTO events (log_id, seq, site, kind, day, visitor)
      SELECT 1, 1, name, 'pageview', toDate(number), 7 FROM ${each}`)
    yield* clickhouse.command(`INSERT INTO visits (site, day, start, visitor, ver, visit)
      SELECT name, toDate(number), number * 86400, 7, 1, 1 FROM ${each}`)
    yield* clickhouse.command(`INSERT INTO page_names (site, id, path, day)
      SELECT name, number, '/', toDate(number) FROM ${each}`)
    yield* clickhouse.command(
      `INSERT INTO event_ids (site, hash, received, log_id) SELECT ${names}, 1, now(), 1`
    )
  })

const columns = {
  events: "toUInt16(day)",
  visits: "toUInt16(day)",
  long_visits: "toUInt16(day)",
  page_names: "toUInt16(day)",
  event_ids: "1"
}

/** The days of a site's events, visits and pages, and an id, by dataset without the site's id; of the rows that a condition leaves. */
export const stored = (id: string, but: Partial<Record<keyof typeof columns, string>> = {}) =>
  Effect.gen(function* () {
    const clickhouse = yield* ClickHouse
    const of = (table: keyof typeof columns) =>
      Effect.map(
        clickhouse.query<{ dataset: string; found: ReadonlyArray<number> }>(
          `SELECT site AS dataset, arraySort(groupArray(${columns[table]})) AS found
          FROM ${table} ${table.endsWith("visits") ? "FINAL" : ""}
          WHERE startsWith(site, '${id}') AND NOT (${but[table] ?? "false"}) GROUP BY site ORDER BY site`
        ),
        (rows) => rows.map(({ dataset, found }) => [dataset.slice(id.length), found] as const)
      )
    return {
      events: yield* of("events"),
      visits: yield* of("visits"),
      long: yield* of("long_visits"),
      names: yield* of("page_names"),
      ids: yield* of("event_ids")
    }
  })

/** One dataset with all of these days, as `stored` shows it. */
export const whole = (suffix: string, days: ReadonlyArray<number>) => {
  const found = [[suffix, days] as const]
  return { events: found, visits: found, long: found, names: found, ids: [[suffix, [1]] as const] }
}

export const empty = { events: [], visits: [], long: [], names: [], ids: [] }
