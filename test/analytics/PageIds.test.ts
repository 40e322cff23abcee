import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { pageIdOf, pageIdSql } from "#streams/analytics/PageIds.ts"
import { pack } from "#streams/analytics/VisitEvent.ts"
import { pageIds } from "#src/analytics/migrations/clickhouse/0006_PageIds.ts"
import { noPaths } from "#src/analytics/migrations/clickhouse/0007_NoPaths.ts"
import { longVisits } from "#src/analytics/migrations/clickhouse/0008_LongVisits.ts"
import { PageNames } from "#src/analytics/store/PageNames.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const numberOf = (path: string): string =>
  String(Buffer.from(pageIdOf(pack(path)), "latin1").readBigUInt64LE())

const namesOf = (site: string) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    clickhouse.query<{ path: string; id: string; day: number }>(
      `SELECT path, toString(id) AS id, toUInt16(day) AS day FROM page_names FINAL WHERE site = {site:String} ORDER BY path`,
      { site }
    )
  )

const keyOf = (site: string, day: number) => ({ site, day, visitor: 1n })

describe("numbers of pages", () => {
  it.effect("are the same here and in ClickHouse, of any text", () =>
    Effect.gen(function* () {
      const texts = fc.sample(fc.string({ unit: "binary", maxLength: 300 }), {
        seed: 20_261_128,
        numRuns: 500
      })
      const paths = ["", "/", "\0", "/ä", "/😀", `/${"long/".repeat(400)}`, ...texts]
      const encoded = paths.map((path) => `'${Buffer.from(path).toString("base64")}'`).join(", ")
      const [row] = yield* (yield* ClickHouse).query<{ ids: ReadonlyArray<string> }>(
        `SELECT arrayMap(text -> toString(${pageIdSql("base64Decode(text)")}), [${encoded}]) AS ids`
      )
      // A lone surrogate is stored as the sign for what cannot be read.
      assert.deepStrictEqual(
        row?.ids,
        paths.map((path) => numberOf(Buffer.from(path).toString()))
      )
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("have their paths stored, of each site once and with the last day", () =>
    Effect.gen(function* () {
      const names = new PageNames(yield* ClickHouse)
      names.note(keyOf("a", 20_000), ["/x", "/y", "/x"].map(pack))
      names.note(keyOf("a", 19_000), ["/y"].map(pack))
      names.note(keyOf("b", 20_001), ["/x"].map(pack))
      yield* names.flush
      names.note(keyOf("a", 20_002), ["/y"].map(pack))
      names.note(keyOf("a", 19_999), ["/x"].map(pack))
      yield* names.flush
      const named = (path: string, day: number) => ({ path, id: numberOf(path), day })
      assert.deepStrictEqual(yield* namesOf("a"), [named("/x", 20_000), named("/y", 20_002)])
      assert.deepStrictEqual(yield* namesOf("b"), [named("/x", 20_001)])
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect(
    "take the place of paths in visits that are there, also where the step is cut off and runs again",
    () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const run = (statements: ReadonlyArray<string>) =>
          Effect.forEach(statements, (statement) => clickhouse.command(statement))
        // As it was before.
        yield* clickhouse.command("DROP VIEW to_long_visits")
        yield* clickhouse.command("DROP TABLE long_visits")
        const lists = ["view.page", "view.second", "view.new", "goal.name", "goal.second", "goal.page"]
        yield* clickhouse.command(
          `ALTER TABLE visits ${lists.map((name) => `DROP COLUMN \`${name}\``).join(", ")}`
        )
        yield* clickhouse.command(
          `ALTER TABLE visits ADD COLUMN pages Array(String), ADD COLUMN page_s Array(UInt32), ADD COLUMN page_new Array(UInt8),
          ADD COLUMN goals Array(LowCardinality(String)), ADD COLUMN goal_s Array(UInt32),
          ADD COLUMN goal_pages Array(LowCardinality(String))`
        )
        yield* clickhouse.command("DROP TABLE page_names")
        yield* clickhouse.command(`INSERT INTO visits
          (site, day, start, visitor, ver, visit, pages, page_s, page_new, goals, goal_s, goal_pages) VALUES
          ('a', 20000, 1728000000, 1, 1, 0, ['/x', '/y', '/x'], [0, 5, 9], [1, 1, 0], ['buy'], [7], ['/z']),
          ('a', 20001, 1728086400, 1, 1, 0, ['/y'], [0], [1], [], [], []),
          ('a', 20002, 1728172800, 1, 1, 1728172800, [], [], [], ['buy', 'sell'], [0, 1], ['/z', '/x'])`)
        yield* run(pageIds.statements.slice(0, 3))
        yield* run(pageIds.statements)
        yield* run([...noPaths.statements, ...noPaths.statements])
        yield* run([...longVisits.statements, ...longVisits.statements])
        const texts = (ids: string) => `arrayMap(id -> toString(id), ${ids})`
        const found = yield* clickhouse.query(
          `SELECT ${texts("view.page")} AS pages, view.second AS seconds, view.new AS new, goal.name AS goals,
            goal.second AS goal_seconds, ${texts("goal.page")} AS goal_pages FROM visits ORDER BY start`
        )
        const none = { pages: [], seconds: [], new: [], goals: [], goal_seconds: [], goal_pages: [] }
        assert.deepStrictEqual(found, [
          {
            pages: ["/x", "/y", "/x"].map(numberOf),
            seconds: [0, 5, 9],
            new: [1, 1, 0],
            goals: ["buy"],
            goal_seconds: [7],
            goal_pages: [numberOf("/z")]
          },
          { ...none, pages: [numberOf("/y")], seconds: [0], new: [1] },
          { ...none, goals: ["buy", "sell"], goal_seconds: [0, 1], goal_pages: ["/z", "/x"].map(numberOf) }
        ])
        assert.deepStrictEqual(yield* namesOf("a"), [
          { path: "/x", id: numberOf("/x"), day: 20_002 },
          { path: "/y", id: numberOf("/y"), day: 20_001 },
          { path: "/z", id: numberOf("/z"), day: 20_002 }
        ])
        const long = yield* clickhouse.query("SELECT start, goal.second AS seconds FROM long_visits FINAL")
        assert.deepStrictEqual(long, [{ start: 1_728_172_800, seconds: [0, 1] }])
        const columns = yield* clickhouse.query<{ name: string }>(
          "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'visits' AND name IN ('pages', 'page_s', 'goals')"
        )
        assert.deepStrictEqual(columns, [])
      }).pipe(Effect.provide(TestStores.layer))
  )
})
