import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { type Outcome, startBeacons } from "./BeaconLoad.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { countedPageviews, discrepancies, drained, none, storedKinds, storedPaths } from "./StoredEvents.ts"
import { checkVisits, noDifferences, visitDifferences } from "./StoredVisits.ts"
import { VisitLoad } from "./VisitLoad.ts"

/** Kills in one run: 10 in `npm test`; CRASH_KILLS=100 is the long run by hand. CRASH_SEED repeats a run's instants. */
const kills = Number(process.env["CRASH_KILLS"] ?? 10)
const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000)

describe("kill -9 under load", () => {
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    server = await startServer({ env: { TRUST_PROXY: "1" } })
    site = await createSite(server)
  })
  afterAll(() => server?.dispose())

  /** Kills the server so many times while beacons, late events and pings come in; answers what each was answered. */
  const killUnderLoad = async () => {
    const next = seededRandom(seed)
    const visitLoad = new VisitLoad(server.url, site, next)
    const outcomes = new Map<string, Outcome>()
    const startMillis: Array<number> = []
    for (let kill = 0; kill < kills; kill++) {
      const load = startBeacons({ url: server.url, site: site.id, connections: 24, label: `k${kill}` })
      const visits = visitLoad.start()
      // From the middle of the first group commits to some batches into ClickHouse later.
      await sleep(20 + next() * 2_000)
      await server.stop("SIGKILL")
      await Promise.all([load.stop(), visits.stop()])
      for (const [path, outcome] of load.outcomes) outcomes.set(path, outcome)
      const since = performance.now()
      await server.start()
      startMillis.push(performance.now() - since)
    }
    await visitLoad.settle()
    for (const [what, outcome] of visitLoad.outcomes) outcomes.set(what, outcome)
    return { outcomes, startMillis: startMillis.toSorted((left, right) => left - right) }
  }

  it(
    `at ${kills} random instants leaves every event answered 202 in ClickHouse exactly once, and its visits right`,
    { timeout: 300_000 + kills * 60_000 },
    async () => {
      const { outcomes, startMillis } = await killUnderLoad()
      await drained(server, site)
      const accepted = [...outcomes.values()].filter((outcome) => outcome === 202).length
      assert.isAbove(
        accepted,
        kills * 10,
        `CRASH_SEED=${seed}: hardly anything was accepted\n${server.output()}`
      )
      const stored = await storedPaths(server, site)
      assert.deepStrictEqual(discrepancies(outcomes, stored), none, `CRASH_SEED=${seed}`)

      const { rows, ...differences } = await visitDifferences(server, site, stored.size)
      assert.deepStrictEqual(differences, noDifferences, `CRASH_SEED=${seed}`)
      const checked = await checkVisits(server, site)
      assert.deepStrictEqual([checked.code, checked.err], [0, ""], `CRASH_SEED=${seed}: ${checked.out}`)
      const { pageviews, pings } = await storedKinds(server, site)
      assert.strictEqual(await countedPageviews(server, site, "30d"), pageviews, `CRASH_SEED=${seed}`)

      const median = startMillis[startMillis.length >> 1]
      process.stdout.write(
        `${kills} kills: ${accepted} events answered 202, ${outcomes.size} sent, ${stored.size} stored ` +
          `(${pings} pings), ${rows} rows of visits; ` +
          `ready again after ${median?.toFixed(0)} ms (median), ${startMillis.at(-1)?.toFixed(0)} ms (longest)\n`
      )
    }
  )
})
