import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { limits } from "#src/Limits.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { addBrowser, addWebhook, receiver } from "../delivery/DeliveryStage.ts"
import { type Arrived, sendTwins, Side, taking } from "../delivery/TwoServers.ts"
import { settingsOf, type SubscriberSettings, writeSettings } from "./DigestStage.ts"

/** `DIGEST_KILLS=100` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["DIGEST_KILLS"] ?? 5)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const note = `SIMULATION_SEED=${seed} DIGEST_KILLS=${kills}`

const stores = FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer))

/** Postgres's clock for jobs and digests is so far ahead of its own, in seconds. */
const movable = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE clock_ahead (seconds double precision NOT NULL)`
  yield* sql`INSERT INTO clock_ahead VALUES (0)`
  yield* sql`CREATE OR REPLACE FUNCTION jobs_now() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT clock_timestamp() + seconds * interval '1 second' FROM clock_ahead $$`
})

/** The clock goes on to so many seconds before the next full hour of UTC, at which most digests are due. */
const beforeTheHour = (seconds: number) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql`UPDATE clock_ahead SET seconds = seconds + 3600 - ${seconds}::float8
      - extract(epoch FROM jobs_now() - date_trunc('hour', jobs_now()))::float8`
  )

const settings: ReadonlyArray<SubscriberSettings> = [
  settingsOf({ delivery: "hourly", timezone: "UTC" }),
  settingsOf({ delivery: "hourly", timezone: "America/New_York", quietFrom: "22:00", quietTo: "07:00" }),
  settingsOf({ delivery: "daily", digestAt: "00:00", timezone: "Europe/Berlin" }),
  settingsOf({ quietFrom: "00:00", quietTo: "12:00", timezone: "UTC" }),
  settingsOf({})
]

const isNoneDue = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql`SELECT 1 FROM deliveries WHERE held_until <= jobs_now() LIMIT 1`,
    ({ length }) => length === 0
  )
)
/** The hours that are skipped count as time in a queue, and after three days of it a delivery is dead. */
const isNoneLate = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql`SELECT 1 FROM jobs WHERE queue = 'deliveries' AND offered_at < jobs_now() - interval '90 minutes' LIMIT 1`,
    ({ length }) => length === 0
  )
)
const isNoneLeft = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql`SELECT 1 FROM jobs WHERE queue = 'deliveries' UNION ALL SELECT 1 FROM deliveries WHERE held_until IS NOT NULL LIMIT 1`,
    ({ length }) => length === 0
  )
)

/** Kills servers at and around instants at which digests are due, while messages are sent; answers all that was accepted and came. */
const killed = Effect.gen(function* () {
  const { newAdminKey = "" } = yield* FirstBoot
  const { dataDir, databaseUrl } = yield* TestStores
  yield* movable
  const random = new SeededRandom(seed)
  const sideOf = (name: string) => new Side({ databaseUrl, dataDir: join(dataDir, name), leaseMillis: 1_500 })
  const sides = [sideOf("one"), sideOf("two")] as const
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all(sides.map((side) => side.end("SIGKILL"))))
  )
  yield* Effect.promise(() => Promise.all(sides.map((side) => side.start())))
  const arrived: Array<Arrived> = []
  const service = yield* receiver(taking(arrived, random))
  const admin = { url: sides[0].url, adminKey: () => newAdminKey }
  const made = (path: string, json: object) =>
    Effect.promise(() => ask(admin, "POST", `/api/v1/${path}`, { json }))
  const project = textAt(yield* made("projects", { name: "kills" }), "id")
  const key = textAt(
    yield* made("project-keys", { name: "k", projects: [project], rateLimitPerMinute: 6_000 }),
    "key"
  )
  for (const { url } of sides)
    yield* eventually(
      "the server knows the project",
      Effect.promise(async () => {
        const { body } = await ask({ url, adminKey: () => key }, "GET", "/api/v1/projects")
        return (body as { readonly projects?: ReadonlyArray<unknown> }).projects?.length === 1
      })
    )
  for (const one of settings) {
    const { subscriber } = yield* addBrowser([project], service.origin)
    yield* addWebhook([], service.origin, subscriber)
    yield* writeSettings(subscriber, one)
  }
  const accepted: Array<string> = []
  const over = new AbortController()
  const sending = Promise.all(
    [0, 1].map(async (which) => {
      for (let n = 0; !over.signal.aborted; n++) {
        accepted.push(...(await sendTwins(sides, key, `${which}-${n}`, note)))
        await sleep(random.below(150))
      }
    })
  )
  for (let n = 0; n < kills; n++) {
    yield* beforeTheHour(1)
    yield* Effect.promise(async () => {
      await sleep(random.below(2_000))
      const both = random.chance(0.3) ? sides : [sides[random.below(2)] ?? sides[0]]
      await Promise.all(both.map((side) => side.end("SIGKILL")))
      await Promise.all(both.map((side) => side.start()))
    })
    yield* eventually("all that was due has gone", isNoneDue)
    yield* eventually("what was sent before it has come", isNoneLate)
  }
  over.abort()
  yield* Effect.promise(() => sending)
  for (let days = 0; days < 2; days++) {
    yield* Effect.flatMap(SqlClient, (sql) => sql`UPDATE clock_ahead SET seconds = seconds + 86400`)
    yield* eventually("all that was due has gone", isNoneDue)
    yield* eventually("what was sent before it has come", isNoneLate)
  }
  yield* eventually("all have ended", isNoneLeft)
  yield* Effect.promise(() => Promise.all(sides.map((side) => side.end("SIGTERM"))))
  return { accepted, arrived, project }
})

interface Row {
  readonly id: string
  readonly digest: string | null
  readonly path: string
  /** of the delivery by which it went */
  readonly went: string | null
  readonly outcome: string | null
  readonly error: string | null
  readonly repeated: boolean | null
  /** outcomes of its own and of its digest's delivery */
  readonly ends: number
}

const check = Effect.fnUntraced(function* ({
  accepted,
  arrived,
  project
}: {
  readonly accepted: ReadonlyArray<string>
  readonly arrived: ReadonlyArray<Arrived>
  readonly project: string
}) {
  const sql = yield* SqlClient
  const rows =
    yield* sql<Row>`SELECT d.id, d.digest_id AS digest, regexp_replace(c.address, '^https?://[^/]*', '') AS path,
      e.id AS went, e.outcome, e.last_error AS error, e.repeated, (SELECT count(*) FROM jobs_ended o WHERE o.queue = 'deliveries'
        AND o.id IN (d.id, delivery_id(d.digest_id, d.channel_id)))::int AS ends
    FROM messages m JOIN deliveries d ON d.message_id = m.id JOIN channels c ON c.id = d.channel_id
      LEFT JOIN jobs_ended e ON e.queue = 'deliveries' AND e.id = coalesce(delivery_id(d.digest_id, d.channel_id), d.id)
    WHERE m.project_id = ${project}`
  assert.strictEqual(new Set(accepted).size, accepted.length, note)
  assert.strictEqual(rows.length, accepted.length * settings.length * 2, note)
  assert.strictEqual(new Set(rows.map(({ id }) => id)).size, rows.length, note)
  const lost = rows.filter(({ ends, outcome }) => outcome !== "done" || ends !== 1)
  assert.deepStrictEqual(lost, [], `each goes once ${note}`)
  const came = Map.groupBy(arrived, ({ id }) => id)
  for (const { path, repeated, went } of rows) {
    const own = came.get(went ?? "") ?? []
    assert.isAtLeast(own.length, 1, `${went} is missing ${note}`)
    assert.isTrue(own.length === 1 || repeated === true, `${went} came twice without a mark ${note}`)
    assert.isTrue(
      own.every((one) => one.path === path),
      `${went} came elsewhere ${note}`
    )
  }
  const known = new Set(rows.map(({ went }) => went))
  assert.deepStrictEqual(
    arrived.filter(({ id }) => !known.has(id)),
    [],
    `nothing else came ${note}`
  )
  const doubled = yield* sql`SELECT subscriber_id, due_at FROM digests GROUP BY 1, 2 HAVING count(*) > 1`
  assert.deepStrictEqual(doubled, [], `one digest for an instant ${note}`)
  // Of a long run's daily digests the page has the first ones alone.
  const untold =
    yield* sql`SELECT g.id, g.items, cardinality(g.messages) AS told, count(DISTINCT d.message_id)::int AS had,
      count(DISTINCT d.message_id) FILTER (WHERE d.message_id = ANY (g.messages))::int AS known
    FROM digests g LEFT JOIN deliveries d ON d.digest_id = g.id GROUP BY g.id
    HAVING g.items <> count(DISTINCT d.message_id) OR cardinality(g.messages) <> least(g.items, ${limits.digestPageItems})
      OR count(DISTINCT d.message_id) FILTER (WHERE d.message_id = ANY (g.messages)) <> cardinality(g.messages)`
  assert.deepStrictEqual(untold, [], note)
  return {
    digests: new Set(rows.flatMap(({ digest }) => digest ?? [])).size,
    items: rows.filter(({ digest }) => digest !== null).length,
    twice: [...came.values()].filter(({ length }) => length > 1).length
  }
})

layer(stores, { excludeTestServices: true })("digests of two servers", (it) => {
  it.effect(
    `have each message once, while either or both are killed ${kills} times at the instant that they are due`,
    () =>
      Effect.gen(function* () {
        const found = yield* killed
        const { digests, items, twice } = yield* check(found)
        assert.isAbove(digests, 0, note)
        yield* Effect.logInfo(
          `${kills} kills: ${found.accepted.length} messages, ${items} items in ${digests} digests, ${twice} deliveries came twice, seed ${seed}`
        )
      }).pipe(Effect.scoped),
    { timeout: 300_000 + kills * 60_000 }
  )
})
