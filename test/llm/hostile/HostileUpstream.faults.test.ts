import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { AskedOf } from "../upstream/ScriptedUpstream.ts"
import { plainSteps, tokens } from "../completions/Scripts.ts"
import { type HostileCall, hostileCall, hostileModels } from "./HostileAnswers.ts"
import { type Booked, type HostileServer, honestModel, startHostile } from "./HostileServer.ts"
import { ask } from "#test/harness/ApiClient.ts"

/**
 * Upstreams that lie about cost and usage, end for every reason, and are cut anywhere. `HOSTILE_CALLS=100000 npx vitest
 * run test/llm/hostile` is the long form; `HOSTILE_SEED` repeats one, `HOSTILE_RESTART_MILLIS` bounds the restart.
 */
const calls = Number(process.env["HOSTILE_CALLS"] ?? 2_000)
const seed = Number(process.env["HOSTILE_SEED"] ?? Date.now() % 2_147_483_647)
const testMillis = 300_000 + calls * 100

const parallel = 32
/** A start on a busy machine may take longer than it has to: on one that is not, 4,000 is the bound. */
const restartMillisMax = Number(process.env["HOSTILE_RESTART_MILLIS"] ?? 30_000)

const nameOf = (number: number): string => `call-${number}`
const numberIn = ({ body }: AskedOf): number => Number(/"hostile_call":(\d+)/.exec(body)?.[1])

/** The most that a call may be charged: its bytes and its output at the highest prices, or what it may grow to. */
const holdOf = ({ maxTokens = 100_000, prompt }: HostileCall): bigint =>
  BigInt(Buffer.byteLength(prompt) + 144) * 30_000_000n + BigInt(maxTokens) * 120_000_000n

const faultOf = (call: HostileCall, booked: Booked | undefined): string | undefined => {
  const { charge, estimates, loss } = booked ?? { charge: 0n, loss: 0n, estimates: [] }
  const sum = charge + loss
  const seen = `${call.what}: charged ${charge}, lost ${loss}, estimates ${estimates
    .map(({ amount, reason }) => `${reason} ${amount}`)
    .join(", ")}`
  if (charge > holdOf(call)) return `more than was held; ${seen}`
  if (estimates.length > 1) return `more than one estimate for one try; ${seen}`
  const [estimate] = estimates
  if (estimate !== undefined && sum !== estimate.amount) return `not its estimate; ${seen}`
  if (call.expected === "either") {
    const isOwn = estimate !== undefined || sum === 0n || call.told === undefined || sum === call.told
    return isOwn ? undefined : `neither told nor listed; ${seen}`
  }
  if (call.expected === "refused") return sum === 0n ? undefined : `nothing was done; ${seen}`
  if (call.expected === "estimate")
    return estimate === undefined ? `no estimate is listed; ${seen}` : undefined
  return estimate === undefined && sum === call.expected ? undefined : `not ${call.expected}; ${seen}`
}

describe("upstreams that lie", () => {
  let hostile: HostileServer

  beforeAll(async () => {
    hostile = await startHostile(hostileModels, 100_000)
    await ask(hostile.server, "PUT", "/api/v1/admin/markups/hostile", { json: { percent: 0 } })
  })
  afterAll(() => hostile?.close())

  it(
    `cost nobody but the platform, to the last digit, in ${calls} calls (HOSTILE_SEED=${seed})`,
    async () => {
      const { hostile: user, server, upstream } = hostile
      for (const model of ["hostile/paid", "hostile/thinking", "hostile/routes", "hostile/gratis"])
        upstream.script(model, (asked) => hostileCall(seed, numberIn(asked)).steps)
      upstream.script(honestModel, () => plainSteps("I am here.", { usage: tokens(9, 4) }))

      let next = 0
      const statuses = new Map<number, number>()
      const make = async (number: number): Promise<void> => {
        const { leavesAfter, maxTokens, model, prompt, stream } = hostileCall(seed, number)
        const body = {
          model: nameOf(number),
          models: [model],
          hostile_call: number,
          stream,
          messages: [{ role: "user", content: prompt }],
          ...(maxTokens === undefined ? {} : { max_tokens: maxTokens })
        }
        const leaving = new AbortController()
        const timer = leavesAfter === undefined ? undefined : setTimeout(() => leaving.abort(), leavesAfter)
        try {
          const response = await fetch(`${server.url}/api/v1/chat/completions`, {
            method: "POST",
            headers: { authorization: `Bearer ${user.key}`, "content-type": "application/json" },
            body: JSON.stringify(body),
            signal: leaving.signal
          })
          await response.arrayBuffer()
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        } catch (error) {
          if (!leaving.signal.aborted) throw error
        } finally {
          clearTimeout(timer)
        }
      }
      const worker = async (): Promise<void> => {
        while (next < calls) await make(next++)
      }
      await Promise.all(Array.from({ length: parallel }, worker))
      await hostile.rest()
      assert.isUndefined(statuses.get(500), JSON.stringify([...statuses]))
      assert.isAbove(statuses.get(200) ?? 0, calls / 4, JSON.stringify([...statuses]))

      const booked = await hostile.booked()
      const asked = new Set(upstream.asked.filter(({ model }) => model !== honestModel).map(numberIn))
      const faults = Array.from(asked).flatMap((number) => {
        const call = hostileCall(seed, number)
        // If its client leaves, it is chance which part arrives before.
        const judged = call.leavesAfter === undefined ? call : { ...call, expected: "either" as const }
        const fault = faultOf(judged, booked.get(nameOf(number)))
        return fault === undefined ? [] : [`${nameOf(number)}: ${fault}`]
      })
      assert.deepStrictEqual(
        faults.slice(0, 10),
        [],
        `${faults.length} of ${asked.size} (HOSTILE_SEED=${seed})`
      )
      await hostile.assertOtherIsServed()
      assert.isAtMost(await hostile.restart(), restartMillisMax)
      await hostile.assertOtherIsServed()
      await hostile.assertLedgerHolds()
    },
    testMillis
  )
})
