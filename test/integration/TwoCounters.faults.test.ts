import { Agent } from "node:http"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { limits } from "#src/Limits.ts"
import { ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { addressOf, sendBeacon, startBeacons } from "./BeaconLoad.ts"
import { counts, type CountingServers, isStandby, standsBy, startCountingServers } from "./CountingServers.ts"
import type { ServerProcess } from "#test/harness/ServerProcess.ts"
import { discrepancies, none, storedPaths } from "./StoredEvents.ts"
import { checkVisits } from "./StoredVisits.ts"
import { until } from "#test/harness/Eventually.ts"

/** where the one event happens that is no page view */
const bought = "/bought"

interface Summary {
  readonly pageviews: number
  readonly visitors: number
  readonly visits: number
  readonly avgDurationSec: number
}

describe("two servers that share Postgres and ClickHouse, behind an alternating balancer", () => {
  let pair: CountingServers
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })

  beforeAll(async () => {
    pair = await startCountingServers()
  })
  afterAll(async () => {
    agent.destroy()
    await pair?.close()
  })

  const view = (site: TestSite, path: string, address: string, more: object = {}) =>
    sendBeacon(
      pair.both.url,
      agent,
      { s: site.id, k: "pageview", u: `https://example.com${path}`, ...more },
      address
    )

  const collect = (to: { readonly url: string }, site: TestSite, id: string) =>
    ask({ url: to.url, adminKey: () => site.secret }, "POST", "/api/v1/collect", {
      json: [{ id, url: bought, name: "buy", visitor: "one" }]
    })

  const summaryOf = async (site: TestSite): Promise<Summary> => {
    const answer = await ask(pair.both, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
    assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
    return (answer.body as { summary: Summary }).summary
  }

  /** A site that both servers know by now. */
  const newSite = async (): Promise<TestSite> => {
    const site = await createSite(pair.both)
    for (const server of pair.servers) {
      await until("it knows the site", async () => {
        const sites = await ask(server, "GET", "/api/v1/sites", { key: pair.both.adminKey() })
        return JSON.stringify(sites.body).includes(site.id) ? undefined : "not yet"
      })
    }
    return site
  }

  const holderAndOther = async (): Promise<readonly [holder: number, other: number]> => {
    let found: readonly [number, number] | undefined
    await until("one of them counts", async () => {
      const sites = await Promise.all(
        pair.servers.map((server) =>
          ask(server, "POST", "/api/v1/collect", { key: "ssk_nobody", json: [] }).then(({ status }) => status)
        )
      )
      const holder = sites.findIndex((status) => status !== 503)
      found = holder < 0 ? undefined : [holder, 1 - holder]
      return found === undefined ? JSON.stringify(sites) : undefined
    })
    return found ?? [0, 1]
  }
  const at = (index: number): ServerProcess => {
    const server = pair.servers[index]
    if (server === undefined) throw new Error(`there is no server ${index}`)
    return server
  }

  /** Each event that was answered 202 is stored once, and the stored visits are what the stored events make. */
  const assertCounted = async (
    site: TestSite,
    load: { readonly outcomes: ReadonlyMap<string, number | undefined> }
  ): Promise<void> => {
    await until("what was acknowledged is stored", async () => {
      const stored = await storedPaths(at(0), site, pair.clickhouseUrl)
      const { lost } = discrepancies(load.outcomes, stored)
      return lost.length === 0 ? undefined : `${lost.length} are not, such as ${lost[0]}`
    })
    const stored = await storedPaths(at(0), site, pair.clickhouseUrl)
    assert.deepStrictEqual(discrepancies(load.outcomes, stored), none)
    await until("the figures are what is stored", async () => {
      const { pageviews } = await summaryOf(site)
      const views = [...stored.keys()].filter((path) => path !== bought).length
      return pageviews === views ? undefined : `${pageviews} of ${views}`
    })
    const check = await checkVisits({ ...at(0), ...pair.both }, site)
    assert.strictEqual(check.code, 0, check.out + check.err)
  }

  it("count 2,000 views of 60 people as that", async () => {
    const site = await newSite()
    for (let from = 0; from < 2_000; from += 8) {
      const statuses = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          view(site, `/${from + index}`, addressOf((from + index) % 60))
        )
      )
      assert.deepStrictEqual([...new Set(statuses)], [202])
    }
    const { pageviews, visitors, visits } = await summaryOf(site)
    assert.deepStrictEqual({ pageviews, visitors, visits }, { pageviews: 2_000, visitors: 60, visits: 60 })
    assert.isAbove(pair.balancer.handedOn(), 500, "half of the requests came to the one that stands by")
    const realtime = await ask(pair.both, "GET", `/api/v1/sites/${site.id}/realtime`)
    assert.deepInclude(realtime.body, { visitors: 60, pageviews: 2_000 })
  })

  it("make one visit of six views of one browser, with the time that it was engaged", async () => {
    const site = await newSite()
    for (let page = 0; page < 6; page++) {
      assert.strictEqual(await view(site, `/${page}`, addressOf(1), { pv: `p${page}` }), 202)
    }
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    const ping = { s: site.id, k: "engage", u: "https://example.com/0", pv: "p0", e: 1_000 }
    assert.strictEqual(await sendBeacon(pair.both.url, agent, ping, addressOf(1)), 202)
    const { avgDurationSec, pageviews, visitors, visits } = await summaryOf(site)
    assert.deepStrictEqual(
      { avgDurationSec, pageviews, visitors, visits },
      { avgDurationSec: 1, pageviews: 6, visitors: 1, visits: 1 }
    )
  })

  it("count a repeated id once", async () => {
    const site = await newSite()
    const answers = []
    for (let tried = 0; tried < 4; tried++) answers.push(await collect(pair.both, site, "order 1"))
    const results = answers.map(({ body }) => (body as { results: ReadonlyArray<object> }).results[0])
    const duplicate = { index: 0, stored: false, reason: "duplicate" }
    assert.deepStrictEqual(results, [{ index: 0, stored: true }, duplicate, duplicate, duplicate])
  })

  it("answer everything that only the other can know with one refusal, and the rest themselves", async () => {
    const site = await newSite()
    const other = at((await holderAndOther())[1])
    const key = pair.both.adminKey()
    const path = `/api/v1/sites/${site.id}`
    await ask(other, "PATCH", path, { key, json: { public: true } })
    const body = `{"url":"/past","name":"pageview","timestamp":"2026-01-01T00:00:00Z"}\n`
    const refused = {
      event: () => ask(other, "POST", "/api/event", { key: "", body: "{}" }),
      collect: () => collect(other, site, "order 2"),
      import: () =>
        ask(other, "POST", `${path}/import?import=a&offset=0&last=true`, {
          key,
          body,
          headers: { "content-type": "application/x-ndjson" }
        }),
      rebuild: () => ask(other, "POST", `${path}/visits/rebuild`, { key, json: {} }),
      stats: () => ask(other, "GET", `${path}/stats`, { key }),
      breakdown: () => ask(other, "GET", `${path}/breakdown?dimension=page`, { key }),
      realtime: () => ask(other, "GET", `${path}/realtime`, { key }),
      drops: () => ask(other, "GET", `${path}/drops`, { key }),
      export: () => ask(other, "GET", `${path}/export`, { key }),
      publicStats: () => ask(other, "GET", `/api/v1/public/sites/${site.id}/stats`, { key: "" }),
      publicBreakdown: () =>
        ask(other, "GET", `/api/v1/public/sites/${site.id}/breakdown?dimension=page`, {
          key: ""
        }),
      publicRealtime: () => ask(other, "GET", `/api/v1/public/sites/${site.id}/realtime`, { key: "" })
    }
    await until("it knows that the site is public", async () => {
      const { status } = await refused.publicStats()
      return status === 404 ? "not yet" : undefined
    })
    for (const [name, answer] of Object.entries(refused)) {
      const found = await answer()
      assert.isTrue(isStandby(found), `${name}: ${found.status} ${JSON.stringify(found.body)}`)
    }
    const ready = await ask(other, "GET", "/readyz", { key: "" })
    assert.strictEqual(ready.status, 200)
    assert.match(other.output(), /"analytics":"standby/)
    const served = [
      ask(other, "GET", "/api/v1/sites", { key }),
      ask(other, "PATCH", path, { key, json: { name: "Renamed" } }),
      ask(other, "GET", "/a.js", { key: "" }),
      ask(other, "GET", "/", { key: "" })
    ]
    for (const answer of served) assert.strictEqual((await answer).status, 200)
  })

  it("move the lease soon after a kill -9 of its holder, and lose and double nothing", async () => {
    // The lease of the dead ends, is found, and the last moment of a frozen one passes.
    assert.isBelow(2 * limits.countingLeaseMillis + 2 * limits.countingPollMillis, 10_000)
    const site = await newSite()
    const [holder, other] = await holderAndOther()
    assert.strictEqual((await collect(pair.both, site, "order 3")).status, 202)
    // An id that is only in the log of the dead one is known when that log comes with it.
    await until("the order is stored", async () => {
      const stored = await storedPaths(at(0), site, pair.clickhouseUrl)
      return stored.has(bought) ? undefined : "not yet"
    })
    const load = startBeacons({ url: pair.both.url, site: site.id, connections: 4, label: "killed" })
    await until("it is under load", async () => (load.outcomes.size > 200 ? undefined : "not yet"))
    await at(holder).stop("SIGKILL")
    await counts(at(other))
    const before = [...load.outcomes].filter(([, outcome]) => outcome === 202).length
    await until("the other takes events", async () => {
      const taken = [...load.outcomes].filter(([, outcome]) => outcome === 202).length
      return taken > before + 100 ? undefined : `${taken} of ${before + 100}`
    })
    const repeated = await collect(pair.both, site, "order 3")
    assert.deepInclude(repeated.body, { accepted: 0 }, "an id that the dead one took is known")
    // The dead one's acknowledged and not yet stored events are in its log, and come with it.
    await at(holder).start()
    await load.stop()
    const outcomes = new Map([...load.outcomes, [bought, 202]])
    await assertCounted(site, { outcomes })
    const realtime = await ask(pair.both, "GET", `/api/v1/sites/${site.id}/realtime`)
    const seen = (realtime.body as { pageviews: number }).pageviews
    const stored = await storedPaths(at(0), site, pair.clickhouseUrl)
    assert.strictEqual(seen, stored.size - 1)
  })

  it("stop counting where the holder was frozen for longer than its lease", async () => {
    const site = await newSite()
    const [holder, other] = await holderAndOther()
    const load = startBeacons({ url: pair.both.url, site: site.id, connections: 4, label: "frozen" })
    await until("it is under load", async () => (load.outcomes.size > 200 ? undefined : "not yet"))
    process.kill(at(holder).pid(), "SIGSTOP")
    try {
      await counts(at(other))
    } finally {
      process.kill(at(holder).pid(), "SIGCONT")
    }
    await until("it is under load again", async () => {
      const size = load.outcomes.size
      return size > 600 ? undefined : String(size)
    })
    await load.stop()
    await assertCounted(site, load)
  })

  it("hand over where the holder alone has lost Postgres", async () => {
    const site = await newSite()
    const [holder, other] = await holderAndOther()
    const load = startBeacons({ url: pair.both.url, site: site.id, connections: 4, label: "cut-off" })
    await until("it is under load", async () => (load.outcomes.size > 200 ? undefined : "not yet"))
    pair.wires[holder]?.breakWire("stall")
    try {
      await counts(at(other))
      await standsBy(at(holder))
    } finally {
      pair.wires[holder]?.mend()
    }
    await load.stop()
    await assertCounted(site, load)
  })
})
