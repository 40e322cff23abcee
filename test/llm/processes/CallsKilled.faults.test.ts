import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import type { ServerProcess } from "#test/harness/ServerProcess.ts"
import { until } from "#test/harness/Eventually.ts"
import { type Caller, makeCaller } from "../Caller.ts"
import { type RouterProcesses, startRouters } from "./RouterProcesses.ts"

/** Kills in one run: 5 in `npm test`; CALL_KILLS=50 is the long run by hand. CALL_KILLS_SEED repeats a run's instants. */
const kills = Number(process.env["CALL_KILLS"] ?? 5)
const seed = Number(process.env["CALL_KILLS_SEED"] ?? Date.now() % 1_000_000)

const connections = 24

describe("kill -9 amid calls", () => {
  let routers: RouterProcesses
  let server: ServerProcess
  let caller: Caller

  beforeAll(async () => {
    routers = await startRouters(1)
    const [first] = routers.servers
    assert.isDefined(first)
    server = first
    caller = await makeCaller(server, 100)
  })
  afterAll(() => routers?.close())

  /** Calls, plain and streamed, until stopped; the charge in every whole answer, by its id. */
  const startCalls = (charged: Map<string, bigint>) => {
    const stopping = new AbortController()
    const loop = async (): Promise<void> => {
      for (let at = 0; !stopping.signal.aborted; at++) {
        try {
          const answer = await caller.say("sandbox/echo", `Call ${at} of many`, { stream: at % 2 === 0 })
          const id = answer.headers.get("x-request-id") ?? ""
          if (answer.status === 200 && answer.isDone && answer.router !== undefined)
            charged.set(id, picoOfNumber(answer.router.charged_usd) ?? 0n)
        } catch (error) {
          // The server was killed: this call's answer is not whole.
          if (stopping.signal.aborted) return
          if (!(error instanceof Error)) throw error
          await sleep(5)
        }
      }
    }
    const loops = Array.from({ length: connections }, loop)
    return async () => {
      stopping.abort()
      await Promise.all(loops)
    }
  }

  it(
    `${kills} times leaves every charge that was answered in the ledger once, and no hold or lease behind`,
    { timeout: 300_000 + kills * 60_000 },
    async () => {
      const next = seededRandom(seed)
      const charged = new Map<string, bigint>()
      for (let kill = 0; kill < kills; kill++) {
        const before = charged.size
        const stop = startCalls(charged)
        await until("calls are answered", () => {
          const more = charged.size - before
          return Promise.resolve(more > connections ? undefined : `${more} are`)
        })
        await sleep(next() * 1_200)
        await server.stop("SIGKILL")
        await stop()
        await server.start()
      }
      const why = `CALL_KILLS_SEED=${seed}`
      await until("every charge is settled", async () => {
        const settled = await routers.charges()
        const missing = [...charged.keys()].filter((id) => !settled.has(id))
        return missing.length === 0 ? undefined : `${missing.length} of ${charged.size} are missing (${why})`
      })
      const settled = await routers.charges()
      for (const [id, amount] of charged) assert.strictEqual(settled.get(id), amount, `${id} (${why})`)
      await until("leases are given back", async () => {
        const { leased } = await routers.verify()
        return leased === "0" ? undefined : `${leased} (${why})`
      })
      const verdict = await routers.verify()
      assert.deepStrictEqual(verdict.differences, [], why)
      const sum = [...settled.values()].reduce((total, amount) => total + amount, 0n)
      assert.strictEqual(BigInt(verdict.charged), sum, why)
      const { body } = await ask(server, "GET", "/api/v1/credits", { key: caller.key })
      assert.strictEqual(
        picoOfNumber((body as { balance_usd: number }).balance_usd),
        (picoOfNumber(100) ?? 0n) - sum,
        why
      )
      process.stdout.write(`${kills} kills: ${charged.size} calls answered, ${settled.size} settled\n`)
    }
  )
})
