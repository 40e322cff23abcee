import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { startBeacons } from "./BeaconLoad.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import {
  countedPageviews,
  discrepancies,
  drained,
  embeddedClickHouse,
  embeddedPostgresPid,
  none,
  storedPaths
} from "./StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"

const kills = Number(process.env["CHILD_KILLS"] ?? 5)
const seed = Number(process.env["CHILD_SEED"] ?? Date.now() % 1_000_000)

describe("an embedded store that is killed under load", () => {
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    // The embedded PostgreSQL, also where the suite is given a server: an empty variable counts as unset.
    server = await startServer({ env: { TRUST_PROXY: "1", DATABASE_URL: "" } })
    site = await createSite(server)
  })
  afterAll(() => server?.dispose())

  const statsOf = () => ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)

  it(
    `ClickHouse, ${kills} times and also while it takes a batch: nothing is lost or doubled, no connection breaks`,
    { timeout: 300_000 + kills * 60_000 },
    async () => {
      const next = seededRandom(seed)
      const load = startBeacons({ url: server.url, site: site.id, connections: 16, label: "clickhouse" })
      await sleep(500)
      for (let kill = 0; kill < kills; kill++) {
        const { pid } = embeddedClickHouse(server)
        // A read makes a batch go at once: the kill comes before, while or after it is inserted.
        const read = statsOf()
        await sleep(next() * 300)
        process.kill(pid, "SIGKILL")
        const { body, status } = await read
        assert.include([200, 503], status, `CHILD_SEED=${seed}: ${JSON.stringify(body)}`)
        await until("reads recover", async () => {
          const answer = await statsOf()
          assert.include([200, 503], answer.status, `CHILD_SEED=${seed}: ${JSON.stringify(answer.body)}`)
          return answer.status === 200 ? undefined : JSON.stringify(answer.body)
        })
        assert.notStrictEqual(embeddedClickHouse(server).pid, pid)
      }
      await load.stop()
      assert.deepStrictEqual([...new Set(load.outcomes.values())], [202], `CHILD_SEED=${seed}`)
      await drained(server, site)
      const stored = await storedPaths(server, site)
      assert.deepStrictEqual(discrepancies(load.outcomes, stored), none, `CHILD_SEED=${seed}`)
      assert.strictEqual(await countedPageviews(server, site), stored.size, `CHILD_SEED=${seed}`)
    }
  )

  it("PostgreSQL: keys and sites go on from memory, and writes work again", async () => {
    const load = startBeacons({ url: server.url, site: site.id, connections: 16, label: "postgres" })
    const pid = embeddedPostgresPid(server)
    process.kill(pid, "SIGKILL")
    assert.strictEqual((await ask(server, "GET", "/api/v1/sites")).status, 200)
    await until("writes work again", async () => {
      const made = await ask(server, "POST", "/api/v1/sites", { json: { name: "B", domain: "b.example" } })
      assert.include([201, 503], made.status, JSON.stringify(made.body))
      return made.status === 201 ? undefined : JSON.stringify(made.body)
    })
    assert.notStrictEqual(embeddedPostgresPid(server), pid)
    await load.stop()
    assert.deepStrictEqual([...new Set(load.outcomes.values())], [202])
    await drained(server, site)
    const stored = await storedPaths(server, site)
    const own = new Map([...stored].filter(([path]) => load.outcomes.has(path)))
    assert.deepStrictEqual(discrepancies(load.outcomes, own), none)
  })
})
