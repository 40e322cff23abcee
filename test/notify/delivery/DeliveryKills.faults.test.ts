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
import { addBrowser, addWebhook, receiver } from "./DeliveryStage.ts"
import { type Arrived, sendTwins, Side, taking } from "./TwoServers.ts"

/** `DELIVERY_KILLS=100` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["DELIVERY_KILLS"] ?? 5)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const note = `SIMULATION_SEED=${seed} DELIVERY_KILLS=${kills}`

const stores = FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer))

const subscribers = 6
const waitingMax = 500

/** Two servers with senders, and a service that takes pushes and calls, while something happens to the servers. */
const underLoad = Effect.fnUntraced(function* (
  name: string,
  leaseMillis: number,
  happens: (sides: readonly [Side, Side], random: SeededRandom) => Promise<void>
) {
  const { newAdminKey = "" } = yield* FirstBoot
  const { dataDir, databaseUrl } = yield* TestStores
  const random = new SeededRandom(seed)
  const sides: readonly [Side, Side] = [
    new Side({ databaseUrl, dataDir: join(dataDir, `${name}0`), leaseMillis }),
    new Side({ databaseUrl, dataDir: join(dataDir, `${name}1`), leaseMillis })
  ]
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all(sides.map((side) => side.end("SIGKILL"))))
  )
  yield* Effect.promise(() => Promise.all(sides.map((side) => side.start())))
  const arrived: Array<Arrived> = []
  const service = yield* receiver(taking(arrived, random))
  const admin = { url: sides[0].url, adminKey: () => newAdminKey }
  const made = (path: string, json: object) =>
    Effect.promise(() => ask(admin, "POST", `/api/v1/${path}`, { json }))
  const project = textAt(yield* made("projects", { name }), "id")
  const key = textAt(
    yield* made("project-keys", { name, projects: [project], rateLimitPerMinute: 6_000 }),
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
  for (let n = 0; n < subscribers; n++) {
    yield* addBrowser([project], service.origin)
    yield* addWebhook([project], service.origin)
  }
  const accepted: Array<string> = []
  yield* Effect.promise(async () => {
    const over = new AbortController()
    const sender = async (which: number): Promise<void> => {
      for (let n = 0; !over.signal.aborted; n++) {
        accepted.push(...(await sendTwins(sides, key, `${name}-${which}-${n}`, note)))
        // Both servers may be away for long.
        while (accepted.length * subscribers * 2 - arrived.length > waitingMax) await sleep(20)
        await sleep(random.below(40))
      }
    }
    const senders = Promise.all([sender(0), sender(1)])
    await happens(sides, random)
    over.abort()
    await senders
  })
  const sql = yield* SqlClient
  const left = sql`SELECT l.*, j.seq, j.id, j.attempts, j.open, j.last_error FROM job_lanes l
    JOIN jobs j ON j.queue = l.queue AND j.lane = l.lane WHERE l.queue = 'deliveries' LIMIT 3`
  yield* eventually(
    "all have ended",
    Effect.map(left, ({ length }) => length === 0)
  ).pipe(Effect.tapError(() => Effect.flatMap(left, (rows) => Effect.logError(JSON.stringify(rows)))))
  yield* Effect.promise(() => Promise.all(sides.map((side) => side.end("SIGTERM"))))
  return { accepted, arrived, project }
})

interface Row {
  readonly id: string
  readonly path: string
  readonly seq: string
  readonly outcome: string
  readonly repeated: boolean
}

/** Asserts that each pair has one outcome, that nothing is missing, and the order of each lane; answers the doubles. */
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
  const messages = yield* sql<{ id: string }>`SELECT id FROM messages WHERE project_id = ${project}`
  assert.sameMembers(
    messages.map(({ id }) => id),
    [...accepted],
    note
  )
  const rows =
    yield* sql<Row>`SELECT d.id, regexp_replace(c.address, '^https?://[^/]*', '') AS path, e.seq::text, e.outcome, e.repeated
    FROM messages m JOIN deliveries d ON d.message_id = m.id JOIN channels c ON c.id = d.channel_id
      JOIN jobs_ended e ON e.queue = 'deliveries' AND e.id = d.id
    WHERE m.project_id = ${project}`
  assert.strictEqual(rows.length, accepted.length * subscribers * 2, note)
  const known = new Map(rows.map((row) => [row.id, row]))
  assert.strictEqual(known.size, rows.length, `one row and one outcome each ${note}`)
  assert.deepStrictEqual(
    rows.filter(({ outcome }) => outcome !== "done"),
    [],
    note
  )
  const times = new Map<string, number>()
  const last = new Map<string, bigint>()
  for (const { id, path } of arrived) {
    const row = known.get(id)
    assert.strictEqual(row?.path, path, `${id} ${note}`)
    times.set(id, (times.get(id) ?? 0) + 1)
    const seq = BigInt(row?.seq ?? 0)
    assert.isTrue(seq >= (last.get(path) ?? 0n), `${id} came out of order ${note}`)
    last.set(path, seq)
  }
  for (const { id } of rows) assert.isAtLeast(times.get(id) ?? 0, 1, `${id} is missing ${note}`)
  const doubled = rows.filter(({ id }) => (times.get(id) ?? 0) > 1)
  assert.deepStrictEqual(
    doubled.filter(({ repeated }) => !repeated),
    [],
    `came twice without a mark ${note}`
  )
  const repeated = rows.filter((row) => row.repeated).length
  return { deliveries: rows.length, doubled: doubled.length, repeated }
})

layer(stores, { excludeTestServices: true })("deliveries of two servers", (it) => {
  it.effect("are not repeated when either is told to stop under load", () =>
    Effect.gen(function* () {
      const found = yield* underLoad("stops", limits.jobLeaseMillis, async (sides) => {
        for (const side of sides) {
          await sleep(300)
          await side.end("SIGTERM")
          await side.start()
        }
      })
      const { deliveries, doubled, repeated } = yield* check(found)
      assert.isAbove(deliveries, 100)
      assert.deepStrictEqual({ doubled, repeated }, { doubled: 0, repeated: 0 }, note)
    }).pipe(Effect.scoped)
  )

  it.effect(
    `come once and in order, but for such as are marked, while either is killed ${kills} times`,
    () =>
      Effect.gen(function* () {
        const found = yield* underLoad("kills", 1_500, async (sides, random) => {
          for (let n = 0; n < kills; n++) {
            await sleep(200 + random.below(800))
            const side = sides[random.below(2)] ?? sides[0]
            await side.end("SIGKILL")
            await side.start()
          }
        })
        const { deliveries, doubled, repeated } = yield* check(found)
        assert.isAbove(deliveries, 100)
        assert.isAtMost(doubled, limits.deliveryAttempts * kills, note)
        yield* Effect.logInfo(
          `${kills} kills: ${found.accepted.length} messages, ${deliveries} deliveries, ${repeated} repeated, ${doubled} came twice, seed ${seed}`
        )
      }).pipe(Effect.scoped),
    { timeout: 300_000 + kills * 60_000 }
  )
})
