import { setTimeout as pause } from "node:timers/promises"
import { ask } from "#test/harness/ApiClient.ts"
import { type Account, completionPrice, promptPrice } from "./Answers.ts"
import { untilIdle } from "./BenchUpstream.ts"
import { markupPercent, type OurServer } from "./OurServer.ts"

/** How long the ledger may take to show the served calls: it is booked from the log of calls, soon after. */
const bookedWithinMillis = 15_000

/** The price of the served tokens with the markup, in pico-USD; every price times 102 divides by 100. */
const costOf = (served: Pick<Account, "promptTokens" | "completionTokens">): bigint =>
  ((BigInt(served.promptTokens) * promptPrice.pico + BigInt(served.completionTokens) * completionPrice.pico) *
    BigInt(100 + markupPercent)) /
  100n

/** Of a server's credits; numbers in USD, exact to the pico-USD below 2,000 USD. */
const spentOf = async (server: LedgerOwner): Promise<bigint> => {
  const { body, status } = await ask(
    { url: server.url, adminKey: () => server.adminKey },
    "GET",
    "/api/v1/credits"
  )
  const { lifetime_spent_usd: usd } = Object(body)
  if (typeof usd !== "number") throw new Error(`no spend in ${status} ${JSON.stringify(body)}`)
  return BigInt(Math.round(usd * 1e12))
}

type LedgerOwner = Pick<OurServer, "url" | "adminKey">

/**
 * Runs the work, then compares what the ledger has booked meanwhile with what the upstream says that it served, to the
 * last pico-dollar. Nothing else may ask either meanwhile.
 */
export const whileBooked = async <A>(
  upstreamPort: number,
  server: LedgerOwner | undefined,
  work: () => Promise<A>
): Promise<A> => {
  const before = await untilIdle(upstreamPort)
  const spentBefore = server === undefined ? 0n : await spentOf(server)
  const result = await work()
  if (server === undefined) return result
  const after = await untilIdle(upstreamPort)
  const due = costOf(after) - costOf(before)
  const deadline = performance.now() + bookedWithinMillis
  for (;;) {
    const booked = (await spentOf(server)) - spentBefore
    if (booked === due) return result
    if (performance.now() > deadline) {
      const calls = after.requests - before.requests
      throw new Error(`The ledger booked ${booked} pico-USD for ${calls} calls that cost ${due}`)
    }
    await pause(100)
  }
}
