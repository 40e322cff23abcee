import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { startBeacons } from "./BeaconLoad.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { discrepancies, drained, none, storedPaths } from "./StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"

const connections = 10_000
const mebibyte = 1024 * 1024

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024

const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`

/** Bytes that are no UTF-8, where a text should be. */
const notUtf8 = (json: string): Buffer => {
  const bytes = Buffer.from(json)
  const at = json.indexOf("?")
  return Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff, 0xc3, 0x28]), bytes.subarray(at + 1)])
}

describe("a server among hostile clients", () => {
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    server = await startServer({ env: { TRUST_PROXY: "1" } })
    site = await createSite(server)
  })
  afterAll(() => server?.dispose())

  const post = async (path: string, body: string | Buffer): Promise<number> => {
    const response = await fetch(`${server.url}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": userAgent,
        ...(path === "/api/v1/collect" ? { authorization: `Bearer ${site.secret}` } : {})
      },
      body: typeof body === "string" ? body : new Uint8Array(body)
    })
    await response.arrayBuffer()
    return response.status
  }

  it(`serves the others while ${connections} connections are half open, slow or unread, and drops those`, async () => {
    const before = residentBytes(server.pid())
    const script = join(import.meta.dirname, "hostileClients.mjs")
    const port = new URL(server.url).port
    const hostile: ChildProcess = spawn(process.execPath, [script, port, String(connections)], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    try {
      let made = 0
      let left = connections
      if (hostile.stdout === null) throw new Error("no output")
      createInterface(hostile.stdout).on("line", (line) => {
        const count = Number(line.split(" ")[1])
        if (line.startsWith("made")) made = count
        else left = count
      })
      const load = startBeacons({ url: server.url, site: site.id, connections: 8, label: "among" })
      await until("the connections are made", () =>
        Promise.resolve(made === connections ? undefined : `${made} of ${connections}`)
      )
      const atPeak = residentBytes(server.pid())
      const stats = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
      assert.strictEqual(stats.status, 200)
      await until("they are dropped", () =>
        Promise.resolve(left <= connections / 100 ? undefined : `${left} are left`)
      )
      await load.stop()
      assert.deepStrictEqual([...new Set(load.outcomes.values())], [202])
      assert.isAbove(load.outcomes.size, 100)
      const grownBytes = Math.max(atPeak, residentBytes(server.pid())) - before
      process.stdout.write(
        `${connections} hostile connections: the server grew by ${Math.round(grownBytes / mebibyte)} MiB\n`
      )
      assert.isBelow(grownBytes / mebibyte, 400)
      await drained(server, site)
      assert.deepStrictEqual(discrepancies(load.outcomes, await storedPaths(server, site)), none)
    } finally {
      hostile.kill("SIGKILL")
    }
  })

  it("answers bodies that no honest client sends with 4xx, and goes on", async () => {
    const event = (props: string): string =>
      `{"s":"${site.id}","k":"event","n":"?","u":"https://example.com/","p":${props}}`
    const collect = (event: string): string => `{"events":[${event}]}`
    const refused: ReadonlyArray<
      readonly [what: string, path: string, body: string | Buffer, status: number]
    > = [
      ["too large", "/api/event", event(JSON.stringify({ a: "x".repeat(70_000) })), 413],
      ["too large", "/api/v1/collect", `{"events":["${"x".repeat(8 * mebibyte)}"]}`, 413],
      ["cut off", "/api/event", event("{}").slice(0, -5), 400],
      ["cut off", "/api/v1/collect", collect(event("{}")).slice(0, -5), 400],
      ["no UTF-8", "/api/event", notUtf8(event("{}")), 400],
      ["no UTF-8", "/api/v1/collect", notUtf8(collect(event("{}"))), 400],
      ["deep", "/api/event", deep(30_000), 400],
      ["deep", "/api/event", event(deep(30_000)), 400],
      ["deep", "/api/v1/collect", deep(1_000_000), 400],
      ["deep", "/api/v1/collect", collect(deep(1_000_000)), 400],
      ["empty", "/api/event", "", 400],
      ["empty", "/api/v1/collect", "", 400],
      ["null", "/api/event", "null", 400],
      ["null", "/api/v1/collect", "[null]", 400],
      ["polluting", "/api/v1/collect", '{"__proto__":{"events":[]}}', 400],
      ["polluting", "/api/event", `{"__proto__":{"s":"${site.id}","k":"pageview"}}`, 400]
    ]
    for (const [what, path, body, status] of refused) {
      assert.strictEqual(await post(path, body), status, `${what} to ${path}`)
    }
    const beacon = `{"s":"${site.id}","k":"pageview","u":"https://example.com/polluted"`
    for (const name of ["__proto__", "constructor", "prototype", "toString"]) {
      const status = await post("/api/event", `${beacon},"${name}":{"polluted":true}}`)
      assert.isBelow(status, 500, name)
    }
    assert.strictEqual(await post("/api/event", `${beacon}}`), 202)
  })

  it("gives up a body whose sender goes away half-way, and goes on", async () => {
    for (const path of ["/api/event", "/api/v1/collect", "/api/v1/sites"]) {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1")
      await new Promise<void>((resolve) => {
        socket.once("connect", () => {
          const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`
          const authorization = `Authorization: Bearer ${server.adminKey()}\r\n`
          socket.write(`${head}${authorization}Content-Length: 1000\r\n\r\n{"s":`, () => resolve())
        })
      })
      socket.resetAndDestroy()
    }
    assert.strictEqual((await ask(server, "GET", "/api/v1/sites")).status, 200)
  })
})
