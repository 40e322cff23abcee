import { type BenchCase, type BenchSuite, type CaseContext, type Measurement } from "#bench/harness/Suite.ts"
import { load, requestBytes } from "#bench/harness/HttpLoad.ts"
import { type ServerName, unavailableUws } from "./Servers.ts"
import { withServerProcess } from "./ServerProcess.ts"

const agent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

/** What a browser's page view looks like on the wire. */
const event = JSON.stringify({
  n: "pageview",
  u: "https://example.org/blog/a-post?utm_source=x",
  d: "example.org",
  r: null
})

const get = [requestBytes("GET", "/hello", { "User-Agent": agent, Accept: "*/*" })]
const post = [requestBytes("POST", "/event", { "User-Agent": agent, "Content-Type": "text/plain" }, event)]

const connections = 64

const measured =
  (server: ServerName, requests: ReadonlyArray<Uint8Array>, status: string) =>
  ({ quick }: CaseContext): Promise<Measurement> =>
    withServerProcess(server, async ({ cpuMillis, port }) => {
      const options = { port, connections: quick ? 4 : connections, requests }
      await load({ ...options, durationMillis: quick ? 50 : 1500 })
      const before = cpuMillis()
      const result = await load({ ...options, durationMillis: quick ? 100 : 4000 })
      const used = cpuMillis() - before
      const answered = result.statuses[status] ?? 0
      if (answered !== result.requests || result.errors > 0) {
        throw new Error(`Unexpected answers: ${JSON.stringify(result.statuses)}, ${result.errors} errors`)
      }
      const { p50Millis, p99Millis, maxMillis } = result.latency
      return {
        work: result.requests,
        elapsedMillis: result.elapsedMillis,
        ...(Number.isNaN(used) ? {} : { cpuMillis: used }),
        latency: { p50Millis, p99Millis, maxMillis },
        figures: { "server core busy %": (used / result.elapsedMillis) * 100 }
      }
    })

const getCase = (name: string, server: ServerName, more: Partial<BenchCase> = {}): BenchCase => ({
  name: `GET ${name}`,
  group: "GET",
  run: measured(server, get, "200"),
  ...more
})

const postCase = (name: string, server: ServerName, more: Partial<BenchCase> = {}): BenchCase => ({
  name: `POST ${name}`,
  group: "POST",
  run: measured(server, post, "202"),
  ...more
})

const needsUws = { unavailable: unavailableUws }

export const suite: BenchSuite = {
  name: "http",
  about:
    "the front on uWebSockets.js against uWebSockets.js alone, Node's server alone, and Effect on Node's server; " +
    "each in a process of its own on one core, its clients on another",
  unit: "requests",
  cases: [
    getCase("Effect on Node", "Effect on Node", { baseline: true }),
    getCase("Effect on the front (uWS)", "the front (uWS)", needsUws),
    getCase("Effect on the front (Node)", "the front (Node)"),
    getCase("raw Node", "raw Node"),
    getCase("raw uWS", "raw uWS", needsUws),
    postCase("raw uWS", "raw uWS", { ...needsUws, baseline: true }),
    postCase("hot route (uWS)", "the front (uWS)", needsUws),
    postCase("hot route (Node)", "the front (Node)"),
    postCase("raw Node", "raw Node")
  ]
}
