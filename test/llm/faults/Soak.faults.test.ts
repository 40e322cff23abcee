import { existsSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import type { Caller } from "../Caller.ts"
import { faults, playOf } from "../upstream/Faults.ts"
import { openThings } from "../upstream/OpenThings.ts"
import { plainRecording, streamRecording } from "../upstream/Recordings.ts"
import { modelEntry, ScriptedServer, waitsOf } from "../upstream/ScriptedServer.ts"

/**
 * Every fault at once, at random, for a while, with clients that leave at random: afterwards nothing is left of it.
 * `SOAK_SECONDS=600 npx vitest run test/llm/faults/Soak.faults.test.ts` is the long form; `SOAK_SEED` repeats one.
 */
const seconds = Number(process.env["SOAK_SECONDS"] ?? 4)
const seed = Number(process.env["SOAK_SEED"] ?? Date.now() % 2_147_483_647)

/** the soak, and the time before and after it */
const soakMillis = (seconds + 120) * 1_000

const parallel = 16
const good = "good/model"
/** A hundred megabytes each: seldom, and in the long form only. */
const heavy = faults.filter(({ name }) => name.includes("100-mb"))
const light = faults.filter((fault) => !heavy.includes(fault))

const models = [...faults.map(({ name }) => modelEntry(`fault/${name}`)), modelEntry(good)]

/** Statuses that a fault of the upstream may become. */
const expected = new Set([200, 400, 429, 502])

const server = ScriptedServer.layer(models, { limits: waitsOf(600) }).pipe(
  Layer.provideMerge(Metric.enableRuntimeMetricsLayer)
)

const proc = requirement("/proc", () => (existsSync("/proc/self/fd") ? undefined : "this is no Linux"))

describeWith(proc, "a soak", () => {
  layer(server, { excludeTestServices: true, timeout: soakMillis })("many faults at once", (it) => {
    it.effect(
      `leave no hold, fiber, socket or timer behind after ${seconds} s (SOAK_SEED=${seed})`,
      () =>
        Effect.gen(function* () {
          const { caller, server, upstream } = yield* ScriptedServer
          const sql = yield* SqlClient
          for (const fault of faults) upstream.script(`fault/${fault.name}`, playOf(fault))
          upstream.script(good, ({ body }) => [
            { send: body.includes(`"stream":true`) ? streamRecording : plainRecording }
          ])
          const random = seededRandom(seed)
          const pick = <A>(list: ReadonlyArray<A>): A => list[Math.floor(random() * list.length)]!
          const ended = new Map<string, number>()
          const count = (what: string): void => void ended.set(what, (ended.get(what) ?? 0) + 1)

          const once = async (asker: Caller, fault: string): Promise<void> => {
            const model = random() < 0.4 ? await collectionOf(asker, fault) : `fault/${fault}`
            const isStream = random() < 0.6
            const leaving = new AbortController()
            const timer = random() < 0.25 ? setTimeout(() => leaving.abort(), random() * 60) : undefined
            try {
              const body = { stream: isStream, max_tokens: 50 }
              const answer = await asker.say(model, "What do you say?", body, { signal: leaving.signal })
              assert.isTrue(expected.has(answer.status), `${fault}: ${answer.status} ${answer.raw}`)
              count(String(answer.status))
            } catch (error) {
              if (!leaving.signal.aborted) throw error
              count("left")
            } finally {
              clearTimeout(timer)
            }
          }
          const collections = new Map<string, Promise<string>>()
          const collectionOf = (asker: Caller, fault: string): Promise<string> => {
            const known = collections.get(fault) ?? asker.collect([`fault/${fault}`, good])
            collections.set(fault, known)
            return known
          }
          const isLong = seconds > 60
          const loadFor = async (asker: Caller, millis: number): Promise<void> => {
            const end = performance.now() + millis
            const worker = async (): Promise<void> => {
              while (performance.now() < end) {
                await once(asker, pick(isLong && random() < 0.002 ? heavy : light).name)
              }
            }
            const breaker = async (): Promise<void> => {
              while (performance.now() < end) {
                await pause(500 + random() * 2_000)
                await upstream.refuse()
                await pause(random() * 50)
                await upstream.listen()
              }
            }
            await Promise.all([breaker(), ...Array.from({ length: parallel }, worker)])
          }

          const openFibers = async (): Promise<number> => {
            const text = await (await fetch(`${server.url}/metrics`)).text()
            return Number(/^child_fibers_active\S* (\S+)$/m.exec(text)?.[1] ?? Number.NaN)
          }
          const inFlight = async (): Promise<number> => {
            const text = await (await fetch(`${server.url}/metrics`)).text()
            return Number(/^signalbox_model_requests_in_flight\S* (\S+)$/m.exec(text)?.[1] ?? Number.NaN)
          }
          const heldOf = async (asker: Caller): Promise<string> => {
            const [row] = await Effect.runPromise(
              sql<{ settled: string; leased: string; charged: string }>`
            SELECT settled::text, leased::text,
              (SELECT coalesce(sum(amount), 0)::text FROM entries
                WHERE user_id = ${asker.userId} AND kind = 'charge') AS charged
            FROM limits WHERE id = ${`credits:${asker.userId}`}`
            )
            const { charged = "0", leased = "0", settled = "0" } = row ?? {}
            return leased === "0" && settled === charged
              ? ""
              : `${leased} leased, ${settled} settled, ${charged} charged`
          }

          yield* Effect.promise(async () => {
            const asker = await caller(1_000)
            const rest = async (): Promise<void> => {
              await until("no call is under way", async () =>
                (await inFlight()) === 0 ? undefined : `${await inFlight()} are`
              )
              await until("nothing is held", async () => (await heldOf(asker)) || undefined)
              await until("the upstream's connections are closed", async () =>
                upstream.connections() === 0 ? undefined : `${upstream.connections()} are open`
              )
            }
            // The first calls load what is loaded once; every collection keeps a route, which is a fiber.
            await Promise.all(
              light.map(async ({ name }) => asker.say(await collectionOf(asker, name), "Hello"))
            )
            await loadFor(asker, 1_000)
            await rest()
            const [before, fibersBefore] = [openThings(), await openFibers()]
            await loadFor(asker, seconds * 1_000)
            await rest()
            await until("sockets and timers are as before", async () => {
              const now = openThings()
              return now.sockets <= before.sockets + 2 && now.timers <= before.timers + 3
                ? undefined
                : `${JSON.stringify(now)}, before ${JSON.stringify(before)}`
            })
            await until("fibers are as before", async () => {
              const now = await openFibers()
              return now <= fibersBefore + 5 ? undefined : `${now}, before ${fibersBefore}`
            })
            const calls = JSON.stringify(Object.fromEntries(ended))
            assert.isAbove(ended.get("200") ?? 0, 10, calls)
            assert.isAbove(ended.get("left") ?? 0, 3, calls)
          })
        }),
      soakMillis
    )
  })
})
