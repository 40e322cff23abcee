import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createSite, type TestSite } from "./ApiClient.ts"
import { type BeaconLoad, type Outcome, startBeacons } from "./BeaconLoad.ts"
import { type ServerProcess, startServer } from "./ServerProcess.ts"
import { discrepancies, drained, storedPaths } from "./StoredEvents.ts"

/** Kills in one run: 10 in `npm test`; CRASH_KILLS=100 is the long run by hand. CRASH_SEED repeats a run's instants. */
const kills = Number(process.env["CRASH_KILLS"] ?? 10)
const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000)

/** mulberry32: a small seeded generator, so that a failure can be run again. */
const random = (state: number) => (): number => {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

describe("kill -9 under load", () => {
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    server = await startServer({ env: { TRUST_PROXY: "1" } })
    site = await createSite(server)
  })
  afterAll(() => server.dispose())

  it(
    `at ${kills} random instants leaves every event answered 202 in ClickHouse exactly once`,
    { timeout: 60_000 + kills * 20_000 },
    async () => {
      const next = random(seed)
      const outcomes = new Map<string, Outcome>()
      let load: BeaconLoad | undefined
      for (let kill = 0; kill < kills; kill++) {
        load = startBeacons({ url: server.url, site: site.id, connections: 32, label: `k${kill}` })
        // From the middle of the first group commits to some batches into ClickHouse later.
        await sleep(20 + next() * 2_000)
        await server.stop("SIGKILL")
        await load.stop()
        for (const [path, outcome] of load.outcomes) outcomes.set(path, outcome)
        await server.start()
      }
      await drained(server, site)
      const accepted = [...outcomes.values()].filter((outcome) => outcome === 202).length
      assert.isAbove(
        accepted,
        kills * 10,
        `CRASH_SEED=${seed}: hardly anything was accepted\n${server.output()}`
      )
      const found = discrepancies(outcomes, await storedPaths(server, site))
      assert.deepStrictEqual(found, { lost: [], doubled: [], unknown: [] }, `CRASH_SEED=${seed}`)
    }
  )
})
