import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { DropCounts } from "#src/analytics/ingest/DropCounts.ts"
import { parseAgent } from "#streams/analytics/Agent.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { noon } from "./Senders.ts"

const siteIds = ["st_0000000000000000000001", "st_0000000000000000000002"]
const [one = "", two = ""] = siteIds

const withSites = Effect.gen(function* () {
  const sql = yield* SqlClient
  const user = "usr_0000000000000000000001"
  yield* sql`INSERT INTO users ${sql.insert({ id: user, email: "a@b.example", name: "A", role: "user" })} ON CONFLICT DO NOTHING`
  for (const id of siteIds) {
    yield* sql`INSERT INTO sites (id, user_id, name, domain, secret_prefix, secret_hash, visitor_secret)
      VALUES (${id}, ${user}, 'S', 'example.org', 'ssk_', sha256(${id}::text::bytea), 'x') ON CONFLICT DO NOTHING`
  }
  return sql
})

/** Counts as a process has them, for as long as the scope. */
const start = Effect.map(Layer.build(Layer.fresh(DropCounts.layer)), (context) =>
  Effect.runSync(Effect.provide(DropCounts, context))
)

const total = (site: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [row] = yield* sql<{
      sum: number
    }>`SELECT coalesce(sum(count), 0)::float8 AS sum FROM drops WHERE site = ${site}`
    return row?.sum
  })

layer(TestStores.layer)("counts of dropped events", (it) => {
  it.effect("are kept per site, UTC day and reason, and added up over processes", () =>
    Effect.gen(function* () {
      yield* withSites
      const [first, second] = [yield* start, yield* start]
      for (let n = 0; n < 3; n++) first.count(one, Drop.duplicate, noon)
      first.count(one, Drop.hostname, noon + 86_400_000)
      first.count(two, Drop.duplicate, noon)
      assert.deepStrictEqual(yield* first.ofSite(one, "2026-11-21"), [
        { dataset: one, day: "2026-11-21", reason: "duplicate", bot: null, count: 3 },
        { dataset: one, day: "2026-11-22", reason: "hostname", bot: null, count: 1 }
      ])
      second.count(one, Drop.duplicate, noon)
      assert.deepStrictEqual(yield* second.ofSite(one, "2026-11-21"), [
        { dataset: one, day: "2026-11-21", reason: "duplicate", bot: null, count: 4 },
        { dataset: one, day: "2026-11-22", reason: "hostname", bot: null, count: 1 }
      ])
      assert.strictEqual((yield* second.ofSite(one, "2026-11-22")).length, 1)
    })
  )

  it.effect("of bots are kept by the bot's name, the most frequent first; all bots without one are one", () =>
    Effect.gen(function* () {
      const sql = yield* withSites
      const day = "2026-11-23"
      const counted = noon + 2 * 86_400_000
      // Counts from before there were names, and under a name that is no longer listed.
      yield* sql`INSERT INTO drops (site, dataset, day, reason, count) VALUES (${one}, ${one}, ${day}, 'bot', 1)`
      yield* sql`INSERT INTO drops (site, dataset, day, reason, name, count)
        VALUES (${one}, ${one}, ${day}, 'bot', 'Oldbot', 9)`
      const drops = yield* start
      const userAgents = [
        "GPTBot/1.2",
        "GPTBot/1.3",
        "GPTBot/1.4",
        "Sogou web spider/4.0",
        "nobody's crawler",
        "a robot"
      ]
      for (const userAgent of userAgents) {
        drops.count(one, new Drop("bot", parseAgent(userAgent).bot), counted)
      }
      const fields = { dataset: one, day, reason: "bot" as const }
      assert.deepStrictEqual(yield* drops.ofSite(one, day), [
        { ...fields, bot: { name: "Oldbot", category: "other" }, count: 9 },
        { ...fields, bot: { name: "Other bot", category: "other" }, count: 3 },
        { ...fields, bot: { name: "GPTBot", category: "ai" }, count: 3 },
        { ...fields, bot: { name: "Sogou web spider", category: "search" }, count: 1 }
      ])
    })
  )

  it.effect("are written by themselves every second, and when the process ends", () =>
    Effect.gen(function* () {
      yield* withSites
      const before = (yield* total(two)) ?? 0
      yield* Effect.scoped(
        Effect.gen(function* () {
          const drops = yield* start
          drops.count(two, Drop.rate, noon)
          yield* TestClock.adjust(1_000)
          // The write is real I/O behind a test clock: wait for it, not for time.
          while ((yield* total(two)) !== before + 1) yield* Effect.promise(() => new Promise(setImmediate))
          drops.count(two, Drop.rate, noon)
        })
      )
      assert.strictEqual(yield* total(two), before + 2)
    })
  )

  it.effect("of a site that is gone are not kept, and keep no other site's waiting", () =>
    Effect.gen(function* () {
      const sql = yield* withSites
      const drops = yield* start
      const before = (yield* total(two)) ?? 0
      yield* sql`UPDATE sites SET deleted_at = now() WHERE id = ${one}`
      const kept = yield* total(one)
      drops.count("st_0000000000000000000003", Drop.rate, noon)
      drops.count(one, Drop.rate, noon)
      drops.count(two, Drop.rate, noon)
      yield* drops.ofSite(two, "2026-11-21")
      assert.deepStrictEqual([yield* total(one), yield* total(two)], [kept, before + 1])
      yield* sql`UPDATE sites SET deleted_at = NULL WHERE id = ${one}`
    })
  )

  it.effect("wait while Postgres does not take them", () =>
    Effect.gen(function* () {
      const sql = yield* withSites
      const drops = yield* start
      const before = (yield* total(two)) ?? 0
      yield* sql`ALTER TABLE drops RENAME TO away`
      drops.count(two, Drop.late, noon)
      assert.isTrue(yield* Effect.isFailure(drops.ofSite(two, "2026-11-21")))
      yield* sql`ALTER TABLE away RENAME TO drops`
      drops.count(two, Drop.late, noon)
      yield* drops.ofSite(two, "2026-11-21")
      assert.strictEqual(yield* total(two), before + 2)
    })
  )
})
