import { type BenchCase, type BenchSuite, type CaseContext, type Measurement } from "#bench/harness/Suite.ts"
import { load, requestBytes } from "#bench/harness/HttpLoad.ts"
import { unavailableUws, withEffectOnNode, withFront, withRawNode, withRawUws } from "./Servers.ts"

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

type Server = (use: (port: number) => Promise<Measurement>) => Promise<Measurement>

const measured =
  (server: Server, requests: ReadonlyArray<Uint8Array>, status: string) =>
  ({ quick }: CaseContext): Promise<Measurement> =>
    server(async (port) => {
      const options = { port, connections: quick ? 4 : connections, requests }
      await load({ ...options, durationMillis: quick ? 50 : 1500 })
      const before = process.cpuUsage()
      const result = await load({ ...options, durationMillis: quick ? 200 : 4000 })
      const cpu = process.cpuUsage(before)
      const answered = result.statuses[status] ?? 0
      if (answered !== result.requests || result.errors > 0) {
        throw new Error(`Unexpected answers: ${JSON.stringify(result.statuses)}, ${result.errors} errors`)
      }
      const { p50Millis, p99Millis, maxMillis } = result.latency
      return {
        work: result.requests,
        elapsedMillis: result.elapsedMillis,
        cpuMillis: (cpu.user + cpu.system) / 1000,
        latency: { p50Millis, p99Millis, maxMillis }
      }
    })

const getCase = (name: string, server: Server, more: Partial<BenchCase> = {}): BenchCase => ({
  name: `GET ${name}`,
  group: "GET",
  run: measured(server, get, "200"),
  ...more
})

const postCase = (name: string, server: Server, more: Partial<BenchCase> = {}): BenchCase => ({
  name: `POST ${name}`,
  group: "POST",
  run: measured(server, post, "202"),
  ...more
})

const needsUws = { unavailable: unavailableUws }

export const suite: BenchSuite = {
  name: "http",
  about:
    "The front on uWebSockets.js against uWebSockets.js alone, Node's server alone, and Effect on Node's server",
  unit: "requests",
  cases: [
    getCase("Effect on Node", withEffectOnNode, { baseline: true }),
    getCase("Effect on the front (uWS)", withFront("auto"), needsUws),
    getCase("Effect on the front (Node)", withFront("node")),
    getCase("raw Node", withRawNode),
    getCase("raw uWS", withRawUws, needsUws),
    postCase("raw uWS", withRawUws, { ...needsUws, baseline: true }),
    postCase("hot route (uWS)", withFront("auto"), needsUws),
    postCase("hot route (Node)", withFront("node")),
    postCase("raw Node", withRawNode)
  ]
}
