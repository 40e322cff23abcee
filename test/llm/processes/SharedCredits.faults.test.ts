import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { until } from "#test/harness/Eventually.ts"
import { type Caller, makeCaller } from "../Caller.ts"
import { chat } from "../ChatClient.ts"
import { type RouterProcesses, startRouters } from "./RouterProcesses.ts"

const calls = Number(process.env["SHARED_CALLS"] ?? 2_000)
/** The rest is less than a call holds in each of the two processes: twice five times what one costs, of `calls / 4`. */
const usedUpShare = 1 - (2 * 5) / (calls / 4)
/** … and of an allowance, twice the tokens that one holds at least: 62 for the bytes of its text, 144 around it, 1 of the answer. */
const restTokens = 2 * (62 + 144 + 1)

type Window = "hour" | "day" | "week"

/** One in `npm test`; SHARED_WINDOWS=hour,day,week by hand. The ledger's own tests hold all three. */
const windows = (process.env["SHARED_WINDOWS"] ?? "day").split(",") as ReadonlyArray<Window>

const body = {
  model: "sandbox/echo",
  max_tokens: 20,
  messages: [{ role: "user", content: "How many roads must a man walk down before you call him a man?" }]
}

describe("two server processes on one Postgres", () => {
  let routers: RouterProcesses
  let admin: Reachable

  beforeAll(async () => {
    routers = await startRouters(2)
    const [first] = routers.servers
    assert.isDefined(first)
    admin = first
  })
  afterAll(() => routers?.close())

  /**
   * Makes all calls at once, every other one through the second process, and those anew that the server asks to retry;
   * answers how many came to what.
   */
  const makeCalls = async (key: string): Promise<ReadonlyMap<number, number>> => {
    const outcomes = new Map<number, number>()
    const one = async (at: number): Promise<void> => {
      const { headers, status } = await chat(routers.servers[at % 2] ?? admin, key, body)
      // The key's bucket fills within milliseconds, but 2,000 calls come within fewer.
      if (status === 429) return one(at)
      // A machine that stands still for longer than the ledger waits: others held what was left, or Postgres was silent.
      if (headers.get("x-should-retry") === "true" || status === 503) {
        await sleep(1_000 * Number(headers.get("retry-after")))
        return one(at)
      }
      outcomes.set(status, (outcomes.get(status) ?? 0) + 1)
    }
    await Promise.all(Array.from({ length: calls }, (_, at) => one(at)))
    return outcomes
  }

  /** The cost of one call, in USD. */
  const costOfOne = async (caller: Caller): Promise<number> => {
    const { router } = await chat(admin, caller.key, body)
    assert.isDefined(router)
    assert.isAbove(router.charged_usd, 0)
    return router.charged_usd
  }

  const settled = (expected: () => Promise<string | undefined>): Promise<void> => until("settled", expected)

  it(`make ${calls} calls at once with credits for a quarter: nothing is overspent, and nothing is left`, async () => {
    const cost = await costOfOne(await makeCaller(admin, 1))
    const caller = await makeCaller(admin, Number((cost * (calls / 4)).toFixed(12)))
    const outcomes = await makeCalls(caller.key)
    assert.deepStrictEqual([...outcomes.keys()].toSorted(), [200, 402], JSON.stringify([...outcomes]))
    const credits = await caller.credits()
    assert.isAtLeast(credits.balance_usd, 0)
    await settled(async () => {
      const {
        balance_usd: balance,
        lifetime_spent_usd: spent,
        lifetime_topped_up_usd: had
      } = await caller.credits()
      return spent >= had * usedUpShare
        ? undefined
        : `spent ${spent} of ${had}, left ${balance}, ${JSON.stringify([...outcomes])}`
    })
    const verdict = await routers.verify()
    assert.deepStrictEqual(verdict.differences, [])
  })

  it(`make ${calls} calls at once with a key capped at a quarter: the cap holds, and is used up`, async () => {
    const caller = await makeCaller(admin, 10)
    const cost = await costOfOne(caller)
    const cap = Number((cost * (calls / 4)).toFixed(12))
    const key = await caller.makeKey({
      kind: "router",
      spend_limit_usd: cap,
      rate_limit_per_minute: 1_000_000
    })
    const before = await caller.credits()
    const outcomes = await makeCalls(key)
    assert.deepStrictEqual([...outcomes.keys()].toSorted(), [200, 402], JSON.stringify([...outcomes]))
    const spentSince = async () =>
      (picoOfNumber((await caller.credits()).lifetime_spent_usd) ?? 0n) -
      (picoOfNumber(before.lifetime_spent_usd) ?? 0n)
    const capPico = picoOfNumber(cap) ?? 0n
    await settled(async () => {
      const spent = await spentSince()
      return Number(spent) >= Number(capPico) * usedUpShare ? undefined : `spent ${spent} of ${capPico}`
    })
    assert.isTrue((await spentSince()) <= capPico, `${await spentSince()} of ${capPico}`)
    assert.deepStrictEqual((await routers.verify()).differences, [])
  })

  /** A user without credits whose plan allows so many tokens in one window, and ten times as many in the others. */
  const subscriber = async (window: Window, allowed: number): Promise<Caller> => {
    const caller = await makeCaller(admin, 0)
    const plenty = { hour: allowed * 10, day: allowed * 10, week: allowed * 10 }
    const plan = await ask(admin, "POST", "/api/v1/plans", {
      json: {
        name: "Shared",
        price_usd: 1,
        scope: "all",
        covers_direct_api: true,
        models: "*",
        allowances: { ...plenty, [window]: allowed }
      }
    })
    const subscribed = await ask(admin, "POST", "/api/v1/subscriptions", {
      json: {
        user_id: caller.userId,
        plan_id: textAt(plan, "id"),
        current_period_end: new Date(Date.now() + 30 * 86_400_000).toISOString()
      }
    })
    assert.strictEqual(subscribed.status, 201)
    return caller
  }

  const tokensOfOne = async (): Promise<number> =>
    (await chat(admin, (await makeCaller(admin, 1)).key, body)).usage?.total_tokens ?? 0

  for (const window of windows) {
    it(`make ${calls} calls at once with a ${window}'s allowance for a quarter and no credits: it holds, and is used up`, async () => {
      const allowed = (await tokensOfOne()) * (calls / 4)
      const caller = await subscriber(window, allowed)
      const outcomes = await makeCalls(caller.key)
      assert.deepStrictEqual([...outcomes.keys()].toSorted(), [200, 402], JSON.stringify([...outcomes]))
      await settled(async () => {
        const [used = 0] = await routers.allowanceUsed(caller.userId, window)
        assert.isAtMost(used, allowed)
        return used > allowed - restTokens ? undefined : `used ${used} of ${allowed}`
      })
      assert.strictEqual((await caller.credits()).lifetime_spent_usd, 0)
      assert.deepStrictEqual((await routers.verify()).differences, [])
    })
  }

  it(`make twice ${calls} calls around the instant at which an allowance's window resets: each of both windows holds`, async () => {
    const allowed = (await tokensOfOne()) * ((calls * 3) / 4)
    const caller = await subscriber("hour", allowed)
    const resetsIn = 2_500
    await routers.setClock(new Date(Math.ceil(Date.now() / 3_600_000) * 3_600_000 - resetsIn))
    // Some before, some at the instant itself, some after: however fast the machine is.
    const before = makeCalls(caller.key)
    await sleep(resetsIn)
    const outcomes = [await makeCalls(caller.key), await before].flatMap((made) => [...made.keys()])
    assert.deepStrictEqual([...new Set(outcomes)].toSorted(), [200, 402])
    await settled(async () => {
      const used = await routers.allowanceUsed(caller.userId, "hour")
      for (const one of used) assert.isAtMost(one, allowed)
      return used.length === 2 && (used[1] ?? 0) > allowed - restTokens
        ? undefined
        : `used ${used.join(", ")} of ${allowed}`
    })
    assert.deepStrictEqual((await routers.verify()).differences, [])
  })
})
