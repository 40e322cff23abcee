import {
  type BenchCase,
  type BenchSuite,
  type CaseContext,
  type Measurement,
  sized
} from "#bench/harness/Suite.ts"
import { closedLoop } from "#bench/harness/ClosedLoop.ts"
import { requestBytes, startLoad } from "#bench/harness/HttpLoad.ts"
import { type ServerName, unavailableUws } from "./Servers.ts"
import { startServer } from "./ServerProcess.ts"

const agent =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

/** A browser's page view as sent on the wire. */
const event = JSON.stringify({
  n: "pageview",
  u: "https://example.org/blog/a-post?utm_source=x",
  d: "example.org",
  r: null
})

const get = [requestBytes("GET", "/hello", { "User-Agent": agent, Accept: "*/*" })]
const post = [requestBytes("POST", "/event", { "User-Agent": agent, "Content-Type": "text/plain" }, event)]

const measured =
  (name: ServerName, requests: ReadonlyArray<Uint8Array>, status: string) =>
  async (context: CaseContext): Promise<Measurement> => {
    const server = await startServer(name)
    const load = await startLoad({
      port: server.port,
      connections: sized(context, { tiny: 4, full: 64 }),
      requests
    })
    try {
      return await closedLoop(context, { pid: server.pid, load, status })
    } finally {
      await load.stop()
      await server.stop()
    }
  }

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
    getCase("Effect on the front (uWS)", "the front (uWS)", {
      ...needsUws,
      compared: "always",
      sideBySide: true
    }),
    getCase("Effect on the front (Node)", "the front (Node)", { compared: "full", sideBySide: true }),
    getCase("raw Node", "raw Node"),
    getCase("raw uWS", "raw uWS", needsUws),
    postCase("raw uWS", "raw uWS", { ...needsUws, baseline: true }),
    postCase("hot route (uWS)", "the front (uWS)", { ...needsUws, compared: "always", sideBySide: true }),
    postCase("hot route (Node)", "the front (Node)", { compared: "full", sideBySide: true }),
    postCase("raw Node", "raw Node")
  ]
}
