import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { type Answer, ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { type BeaconLoad, type Outcome, startBeacons } from "./BeaconLoad.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"
import { countedPageviews, discrepancies, drained, none, storedPaths } from "./StoredEvents.ts"
import type { TcpProxy } from "#test/harness/TcpProxy.ts"
import { until } from "#test/harness/Eventually.ts"

/** How long a store is away: a few seconds in `npm test`; OUTAGE_SECONDS=60 is the run by hand. */
const outageMillis = Number(process.env["OUTAGE_SECONDS"] ?? 3) * 1_000

/** A read that takes longer than this while a store is away hangs. */
const hangMillis = 15_000

const ways = ["refuse", "stall"] as const

const statuses = (load: BeaconLoad): ReadonlyArray<Outcome> => [...new Set(load.outcomes.values())]

const componentOf = (answer: Answer, name: string): unknown =>
  (answer.body as { components: Record<string, { status: string }> }).components[name]?.status

describe("a store that is away", () => {
  let stores: ServerStores
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    stores = await openStores()
    server = await startServer({ env: { ...stores.env, TRUST_PROXY: "1" } })
    site = await createSite(server)
  })
  afterAll(async () => {
    await server?.dispose()
    await stores?.close()
  })

  const startLoad = (label: string): BeaconLoad =>
    startBeacons({ url: server.url, site: site.id, connections: 8, label })

  const assertStored = async (load: BeaconLoad): Promise<void> => {
    await drained(server, site)
    const stored = await storedPaths(server, site, stores.clickhouseUrl)
    const own = new Map([...stored].filter(([path]) => load.outcomes.has(path)))
    assert.deepStrictEqual(discrepancies(load.outcomes, own), none)
    assert.strictEqual(await countedPageviews(server, site), stored.size)
    assert.isAbove(load.outcomes.size, 20)
  }

  const isUnavailable = ({ headers, status }: Answer): boolean =>
    status === 503 && Number(headers.get("retry-after")) > 0

  /** While the wire is cut: the readiness says so and stays 200, and every `read` answers as it should, in time. */
  const throughOutage = async (
    wire: TcpProxy,
    way: (typeof ways)[number],
    component: string,
    read: () => Promise<void>
  ): Promise<number> => {
    wire.breakWire(way)
    try {
      const since = performance.now()
      await until("/readyz", async () => {
        const ready = await ask(server, "GET", "/readyz", { key: "" })
        assert.strictEqual(ready.status, 200, JSON.stringify(ready.body))
        return componentOf(ready, component) === "degraded" ? undefined : JSON.stringify(ready.body)
      })
      let reads = 0
      while (performance.now() - since < outageMillis || reads < 2) {
        const startedAt = performance.now()
        await read()
        reads++
        assert.isBelow(performance.now() - startedAt, hangMillis, "a read hung")
        await sleep(250)
      }
      return reads
    } finally {
      wire.mend()
    }
  }

  const recovered = (component: string): Promise<void> =>
    until("back to ready", async () => {
      const ready = await ask(server, "GET", "/readyz", { key: "" })
      return componentOf(ready, component) === "up" ? undefined : JSON.stringify(ready.body)
    })

  describe.each(ways)("ClickHouse (connections %s)", (way) => {
    it(
      "delays events and fails reads, and loses nothing",
      { timeout: 300_000 + outageMillis * 2 },
      async () => {
        const load = startLoad(`clickhouse-${way}`)
        await sleep(500)
        await throughOutage(stores.clickhouse, way, "clickhouse", async () => {
          const stats = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
          assert.isTrue(isUnavailable(stats), `${stats.status} ${JSON.stringify(stats.body)}`)
          const sites = await ask(server, "GET", "/api/v1/sites")
          assert.strictEqual(sites.status, 200)
        })
        await recovered("clickhouse")
        await load.stop()
        assert.deepStrictEqual(statuses(load), [202])
        await assertStored(load)
      }
    )
  })

  describe.each(ways)("Postgres (connections %s)", (way) => {
    it(
      "fails what needs it, while known keys and sites go on",
      { timeout: 300_000 + outageMillis * 2 },
      async () => {
        const load = startLoad(`postgres-${way}`)
        await sleep(500)
        await throughOutage(stores.postgres, way, "postgres", async () => {
          const [made, stats, unknown] = await Promise.all([
            ask(server, "POST", "/api/v1/sites", { json: { name: "Later", domain: "later.example" } }),
            ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`),
            ask(server, "GET", "/api/v1/sites", { key: `sk_${"x".repeat(40)}` })
          ])
          assert.isTrue(isUnavailable(made), `${made.status} ${JSON.stringify(made.body)}`)
          assert.strictEqual(stats.status, 200, JSON.stringify(stats.body))
          assert.isTrue(isUnavailable(unknown), `an unknown key: ${unknown.status}`)
        })
        await recovered("postgres")
        await load.stop()
        assert.deepStrictEqual(statuses(load), [202])
        await until("writes work again", async () => {
          const made = await ask(server, "POST", "/api/v1/sites", {
            json: { name: "Later", domain: "later.example" }
          })
          return made.status === 201 ? undefined : `${made.status} ${JSON.stringify(made.body)}`
        })
        await assertStored(load)
      }
    )
  })

  it("does not stop a server that was killed from starting again and taking events", async () => {
    const before = startLoad("killed-before")
    await sleep(500)
    stores.clickhouse.breakWire("refuse")
    await sleep(500)
    await server.stop("SIGKILL")
    await before.stop()
    await server.start()
    const after = startLoad("killed-after")
    const stats = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
    assert.isTrue(isUnavailable(stats), `${stats.status}`)
    await sleep(500)
    stores.clickhouse.mend()
    await recovered("clickhouse")
    await after.stop()
    assert.deepStrictEqual(statuses(after), [202])
    await assertStored(after)
    await assertStored(before)
  })

  it("without Postgres, tells a start to wait for it, and goes on when it comes", async () => {
    await server.stop()
    stores.postgres.breakWire("refuse")
    const started = server.start()
    await until("the reason for the wait", () =>
      Promise.resolve(/Postgres does not answer yet/.test(server.output()) ? undefined : server.output())
    )
    stores.postgres.mend()
    await started
    assert.strictEqual((await ask(server, "GET", "/api/v1/sites")).status, 200)
  })
})
