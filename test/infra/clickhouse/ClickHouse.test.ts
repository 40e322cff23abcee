import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { migrate } from "#src/infra/clickhouse/Migrations.ts"
import { noDrafts } from "#src/analytics/migrations/clickhouse/0002_NoDrafts.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** RowBinary of (n UInt64, text String, tags Array(String)). */
const rowOf = (n: bigint, text: string, tags: ReadonlyArray<string> = []): Uint8Array => {
  const number = Buffer.alloc(8)
  number.writeBigUInt64LE(n)
  const string = (value: string) =>
    Buffer.concat([Buffer.from([Buffer.byteLength(value)]), Buffer.from(value)])
  return Buffer.concat([number, string(text), Buffer.from([tags.length]), ...tags.map(string)])
}

const columns = ["n", "text", "tags"]

const makeTable = (name: string) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    clickhouse.command(
      `CREATE TABLE ${name} (n UInt64, text String, tags Array(String)) ENGINE = MergeTree ORDER BY n
       SETTINGS non_replicated_deduplication_window = 100`
    )
  )

const count = (table: string) =>
  Effect.flatMap(ClickHouse, (clickhouse) =>
    Effect.map(clickhouse.query<{ c: number }>(`SELECT count() AS c FROM ${table}`), (rows) => rows[0]?.c)
  )

describe("ClickHouse", () => {
  layer(TestStores.layer)((it) => {
    it.effect("keeps parts of every table for a while once they are merged", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const tables = yield* clickhouse.query<{ name: string; isKept: boolean }>(
          `SELECT name, create_table_query LIKE '%old_parts_lifetime = 480%' AS isKept FROM system.tables
          WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND name != 'migrations'`
        )
        assert.include(
          tables.map(({ name }) => name),
          "events"
        )
        // A new table has to be given it: Migrations.ts, keepingOldParts.
        assert.deepStrictEqual(
          tables.filter(({ isKept }) => !isKept).map(({ name }) => name),
          []
        )
      })
    )

    it.effect("gives back any text that travels as a parameter, and never reads it as SQL", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const hostile = [
          "'",
          "\\",
          "\\'",
          "'; DROP TABLE x; --",
          "{n:String}",
          "\u0000",
          "\t\n\r",
          "`",
          "é€😀",
          "%41",
          "\\x41"
        ]
        const random = fc.sample(fc.string({ unit: "binary", maxLength: 40 }), { numRuns: 60, seed: 7 })
        // Lone surrogates are no text: UTF-8 has no bytes for them.
        for (const text of [...hostile, ...random.filter((value) => value.isWellFormed())]) {
          const [row] = yield* clickhouse.query<{ text: string; list: ReadonlyArray<string>; bytes: number }>(
            "SELECT {text:String} AS text, {list:Array(String)} AS list, length(text) AS bytes",
            { text, list: [text, "x"] }
          )
          assert.deepStrictEqual(
            row,
            { text, list: [text, "x"], bytes: Buffer.byteLength(text) },
            `seed 7: ${text}`
          )
        }
      })
    )

    it.effect("takes numbers, dates and null as parameters", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const rows = yield* clickhouse.query(
          "SELECT toString({big:UInt64}) AS big, {at:DateTime64(3)} AS at, {none:Nullable(String)} AS none",
          { big: 2n ** 64n - 1n, at: new Date("2026-11-20T12:34:56.789Z"), none: null }
        )
        assert.deepStrictEqual(rows, [
          { big: "18446744073709551615", at: "2026-11-20 12:34:56.789", none: null }
        ])
      })
    )

    it.effect("stores every byte of RowBinary rows, the ones included that look like SQL", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        yield* makeTable("bytes")
        const rows = Array.from({ length: 256 }, (_, n) => rowOf(BigInt(n), `;'"\\\n${n}`, [";", "'"]))
        yield* clickhouse.insert("bytes", columns, rows, { format: "RowBinary" })
        const [sum] = yield* clickhouse.query(
          `SELECT count() AS c, sum(n) AS s, countIf(text = concat(unhex('3b27225c0a'), toString(n))) AS t FROM bytes`
        )
        assert.deepStrictEqual(sum, { c: 256, s: 32_640, t: 256 })
      })
    )

    it.effect("stores nothing of an insert that is cut off", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        yield* makeTable("cut")
        const whole = Buffer.concat(Array.from({ length: 1_000 }, (_, n) => rowOf(BigInt(n), "text")))
        const insert = clickhouse.insert("cut", columns, whole.subarray(0, -3), { format: "RowBinary" })
        assert.strictEqual((yield* Effect.flip(insert))._tag, "ClickHouseFailed")
        assert.strictEqual(yield* count("cut"), 0)
      })
    )

    it.effect("stores JSON lines, and succeeds on an insert without rows", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        yield* makeTable("json")
        const lines = Buffer.from('{"n":1,"text":"a;b","tags":["x"]}\n{"n":2,"text":"c"}\n')
        yield* clickhouse.insert("json", columns, lines, { format: "JSONEachRow" })
        yield* clickhouse.insert("json", columns, new Uint8Array(0), { format: "RowBinary" })
        assert.strictEqual(yield* count("json"), 2)
      })
    )

    it.effect("drops a repeated insert with the same token, and keeps one with another", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        yield* makeTable("tokens")
        const rows = [rowOf(1n, "a"), rowOf(2n, "b")]
        const insert = (token: string) =>
          clickhouse.insert("tokens", columns, rows, { format: "RowBinary", token })
        yield* insert("7:0-2")
        yield* insert("7:0-2")
        assert.strictEqual(yield* count("tokens"), 2)
        yield* insert("7:2-4")
        assert.strictEqual(yield* count("tokens"), 4)
      })
    )

    it.effect("says what is wrong with a statement, by ClickHouse's code", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const error = yield* Effect.flip(clickhouse.query("SELECT * FROM nowhere"))
        assert.deepInclude(error, { _tag: "ClickHouseFailed", code: 60, name: "UNKNOWN_TABLE" })
        const syntax = yield* Effect.flip(clickhouse.query("SELEC 1"))
        assert.deepInclude(syntax, { _tag: "ClickHouseFailed", code: 62 })
        const missing = yield* Effect.flip(clickhouse.query("SELECT {x:String}"))
        assert.deepInclude(missing, { _tag: "ClickHouseFailed", code: 456 })
      })
    )

    it.effect("counts a limit of memory or time as unavailable: later it may succeed", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const heavy = "SELECT uniqExact(number) FROM numbers(10000000)"
        const memory = yield* Effect.flip(clickhouse.query(heavy, {}, { max_memory_usage: 1_000_000 }))
        assert.strictEqual(memory._tag, "ClickHouseUnavailable")
        const endless = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(cityHash64(number))"
        const time = yield* Effect.flip(clickhouse.query(endless, {}, { max_execution_time: 0.1 }))
        assert.strictEqual(time._tag, "ClickHouseUnavailable")
      })
    )

    it.effect("keeps settings and parameters of a statement out of the next ones", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const setting = "SELECT getSetting('max_block_size') AS size"
        const [before] = yield* clickhouse.query(setting)
        const [changed] = yield* clickhouse.query(
          `${setting}, {x:UInt8} AS x`,
          { x: 1 },
          { max_block_size: 77 }
        )
        assert.deepStrictEqual(changed, { size: 77, x: 1 })
        for (let index = 0; index < 10; index++) {
          assert.deepStrictEqual(yield* clickhouse.query(setting), [before])
          assert.strictEqual(
            (yield* Effect.flip(clickhouse.query("SELECT {x:UInt8}")))._tag,
            "ClickHouseFailed"
          )
        }
      })
    )

    it.effect("shows times in UTC, whatever the machine's zone", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const rows = yield* clickhouse.query("SELECT toDateTime(0) AS t, toDate(toDateTime(86399)) AS d")
        assert.deepStrictEqual(rows, [{ t: "1970-01-01 00:00:00", d: "1970-01-01" }])
      })
    )

    it.effect("answers pings", () =>
      Effect.gen(function* () {
        assert.isTrue(yield* (yield* ClickHouse).ping)
      })
    )

    it.effect("is refused when its tables are of a version before the first", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const again = (id: number) => migrate([{ ...noDrafts, id }])
        const [last] = yield* clickhouse.query<{ id: number }>("SELECT max(id) AS id FROM migrations")
        const next = (last?.id ?? 0) + 1
        yield* clickhouse.command("ALTER TABLE visits ADD COLUMN single UInt8")
        assert.include((yield* Effect.flip(again(next))).message, "development version before 0.1.0")
        yield* clickhouse.command("ALTER TABLE visits DROP COLUMN single")
        assert.deepStrictEqual(yield* again(next), ["no drafts"])
      })
    )

    it.effect("is migrated step by step, once, and again after a step that failed", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const known = yield* clickhouse.query<{ id: number }>("SELECT max(id) AS id FROM migrations")
        const base = known[0]?.id ?? 0
        const one = {
          id: base + 1,
          name: "one",
          statements: ["CREATE TABLE IF NOT EXISTS one (n UInt8) ENGINE = Memory"]
        }
        const bad = { id: base + 2, name: "bad", statements: ["CREATE nonsense"] }
        const two = {
          id: base + 2,
          name: "two",
          statements: ["ALTER TABLE one ADD COLUMN IF NOT EXISTS m UInt8"]
        }
        yield* Effect.flip(migrate([one, bad]))
        assert.deepStrictEqual(yield* migrate([one, two]), ["two"])
        assert.deepStrictEqual(yield* migrate([one, two]), [])
        assert.strictEqual((yield* Effect.flip(migrate([one])))._tag, "SchemaIsNewer")
      })
    )
  })
})
