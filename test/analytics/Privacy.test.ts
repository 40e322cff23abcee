import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as fs from "node:fs"
import { join } from "node:path"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { makeSite, rowsOf } from "./SiteProbe.ts"

const live = { excludeTestServices: true } as const

const address = "203.0.113.177"
const userAgent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.6478.1234567 Safari/537.36"

/**
 * Traces that identify a visitor: the address as text and as bytes, and the part of the User-Agent that is theirs
 * alone.
 */
const traces = [
  Buffer.from(address),
  Buffer.from(address.split(".").map(Number)),
  Buffer.from("6478.1234567")
]

const filesUnder = (directory: string): ReadonlyArray<string> =>
  fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

const tracesIn = (content: Buffer): ReadonlyArray<string> =>
  traces.filter((trace) => content.includes(trace)).map((trace) => trace.toString("latin1"))

layer(TestServer.own({ trustProxy: 1 }), live)("a visitor", (it) => {
  const sendBoth = Effect.gen(function* () {
    const { ask } = yield* TestServer
    const site = yield* makeSite()
    const headers = { "x-forwarded-for": address, "user-agent": userAgent }
    const json = { s: site.id, k: "pageview", u: "https://example.com/browser", pv: "p1" }
    const hit = yield* ask("POST", "/api/event", { key: "", json, headers })
    assert.strictEqual(hit.status, 202)
    yield* site.collect([{ url: "/server", ip: address, userAgent }])
    return { hit, site }
  })

  it.effect("is one whether a browser or a server sends, by address and User-Agent", () =>
    Effect.gen(function* () {
      const { site } = yield* sendBoth
      assert.deepStrictEqual(rowsOf(yield* site.read("breakdown?dimension=browser")), [["Chrome", 1, 2, 1]])
    })
  )

  it.effect("leaves neither address nor User-Agent in the stores, the files and the log", () =>
    Effect.gen(function* () {
      const { logged } = yield* TestServer
      const { dataDir } = yield* TestStores
      const { site } = yield* sendBoth
      assert.strictEqual(rowsOf(yield* site.read("breakdown?dimension=page")).length, 2)
      const files = filesUnder(dataDir)
      assert.isTrue(
        files.some((file) => fs.readFileSync(file).includes("/browser")),
        "the log of events is among them"
      )
      for (const file of files) assert.deepStrictEqual(tracesIn(fs.readFileSync(file)), [], file)
      assert.deepStrictEqual(tracesIn(Buffer.from(logged().join("\n"))), [])
      const clickhouse = yield* ClickHouse
      const rows = yield* clickhouse.query("SELECT * FROM events WHERE site = {site:String}", {
        site: site.id
      })
      assert.strictEqual(rows.length, 2)
      const visits = yield* clickhouse.query("SELECT * FROM visits WHERE site = {site:String}", {
        site: site.id
      })
      assert.deepStrictEqual(tracesIn(Buffer.from(JSON.stringify([rows, visits]))), [])
      const sql = yield* SqlClient
      const tables = yield* sql<{ name: string }>`SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`
      assert.isAbove(tables.length, 5)
      for (const { name } of tables) {
        const kept = yield* sql<{ line: string }>`SELECT t::text AS line FROM ${sql(name)} AS t`
        assert.deepStrictEqual(tracesIn(Buffer.from(JSON.stringify(kept))), [], name)
      }
    })
  )

  it.effect("is given no cookie", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const { hit, site } = yield* sendBoth
      const script = yield* ask("GET", "/a.js", { key: "" })
      for (const { headers } of [hit, script, yield* site.read("stats")])
        assert.isNull(headers.get("set-cookie"))
    })
  )
})
