import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { ask, textAt } from "#test/harness/ApiClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { Side } from "#test/notify/delivery/TwoServers.ts"
import { startSandbox } from "#test/notify/sandbox/SandboxClient.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { allConfirmed, TelegramPeople } from "./TelegramPeople.ts"

/** `POLLER_KILLS=100` for a long run by hand, `SIMULATION_SEED` repeats its instants. */
const kills = Number(process.env["POLLER_KILLS"] ?? 10)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const note = `SIMULATION_SEED=${seed} POLLER_KILLS=${kills}`

/** Updates that may wait for a reader. */
const unconfirmedMax = 10

interface Pressed {
  readonly chat: number
  readonly code: string
}

/** A code of whichever server answers; the others are away for a moment. */
const codeOf = async (sides: ReadonlyArray<Side>, link: string): Promise<string> => {
  for (let n = 0; ; n++) {
    const { url } = sides[n % sides.length] ?? assert.fail("there is no server")
    const [made] = await Promise.allSettled([
      ask({ url, adminKey: () => "" }, "POST", `/api/v1/join/${link}/telegram`, {
        key: "",
        json: { timezone: "UTC" }
      })
    ])
    if (made.status === "fulfilled" && made.value.status === 201)
      return textAt(made.value, "startUrl").replace(/.*=/, "")
    await sleep(20)
  }
}

layer(FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer)), { excludeTestServices: true })(
  "the reader of Telegram's updates",
  (it) => {
    it.effect(
      `has each update take effect once while either of two servers is killed ${kills} times`,
      () =>
        Effect.gen(function* () {
          const { newAdminKey = "" } = yield* FirstBoot
          const { dataDir, databaseUrl } = yield* TestStores
          const sandbox = yield* startSandbox()
          const people = new TelegramPeople(sandbox)
          const random = new SeededRandom(seed)
          const side = (name: string) =>
            new Side({
              databaseUrl,
              dataDir: join(dataDir, name),
              leaseMillis: 1_500,
              sandbox: sandbox.origin
            })
          const sides: readonly [Side, Side] = [side("kills0"), side("kills1")]
          yield* Effect.addFinalizer(() =>
            Effect.promise(() => Promise.all(sides.map((one) => one.end("SIGKILL"))))
          )
          yield* Effect.promise(() => Promise.all(sides.map((one) => one.start())))
          const admin = { url: sides[0].url, adminKey: () => newAdminKey }
          const project = yield* Effect.promise(() =>
            ask(admin, "POST", "/api/v1/projects", { json: { name: "Kills" } })
          )
          const link = textAt(project, "joinUrl").replace(/.*\//, "")

          const sql = yield* SqlClient
          const pressed: Array<Pressed> = []
          yield* Effect.promise(async () => {
            const over = new AbortController()
            const presser = async (): Promise<void> => {
              while (!over.signal.aborted) {
                // Both servers may be away for long.
                while (!over.signal.aborted && (await people.unconfirmed()) > unconfirmedMax) await sleep(50)
                const code = await codeOf(sides, link)
                const { chat } = await people.press(code)
                pressed.push({ chat: chat.id, code })
                // Some press twice, and a code is somebody else's try, too.
                if (random.chance(0.3)) await people.write(chat.id, `/start ${code}`)
                if (random.chance(0.2)) await people.press(code, { name: "Too late" })
                await sleep(random.below(60))
              }
            }
            const pressers = Promise.all([presser(), presser()])
            for (let n = 0; n < kills; n++) {
              await sleep(200 + random.below(800))
              const one = sides[random.below(2)] ?? sides[0]
              await one.end("SIGKILL")
              await one.start()
            }
            over.abort()
            await pressers
          })
          yield* allConfirmed(people)

          const channels = yield* sql<{
            address: string
            subscriber_id: string
          }>`SELECT address, subscriber_id
            FROM channels WHERE kind = 'telegram' ORDER BY address`
          const expected = pressed.map(({ chat }) => String(chat)).toSorted()
          assert.deepStrictEqual(channels.map(({ address }) => address).toSorted(), expected, note)
          assert.strictEqual(new Set(channels.map((one) => one.subscriber_id)).size, expected.length, note)
          const [counts] = yield* sql<{ subscribers: number; subscriptions: number; used: number }>`SELECT
            (SELECT count(*)::int FROM subscribers) AS subscribers,
            (SELECT count(*)::int FROM project_subscriptions) AS subscriptions,
            (SELECT count(*)::int FROM telegram_codes WHERE used_at IS NOT NULL) AS used`
          const count = expected.length
          assert.deepStrictEqual(counts, { subscribers: count, subscriptions: count, used: count }, note)
          assert.isAbove(count, kills, note)
          yield* eventually(
            "all replies were sent",
            Effect.map(sql`SELECT 1 FROM jobs WHERE queue = 'telegram-replies'`, ({ length }) => length === 0)
          )
          const repeated = yield* sql`SELECT 1 FROM jobs_ended WHERE queue = 'telegram-replies' AND repeated`
          let doubled = 0
          for (const { chat } of pressed) {
            const said = (yield* Effect.promise(() => people.fromBot(chat))).filter(({ text }) =>
              text.startsWith("Notifications of Kills")
            )
            assert.isAtLeast(said.length, 1, `${chat} ${note}`)
            doubled += said.length - 1
          }
          assert.isAtMost(doubled, repeated.length, note)
          yield* Effect.logInfo(
            `${kills} kills: ${count} chats joined once each, ${repeated.length} replies repeated, ${doubled} came twice, seed ${seed}`
          )
        }).pipe(Effect.scoped),
      { timeout: 300_000 + kills * 60_000 }
    )
  }
)
