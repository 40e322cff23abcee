import { spawn } from "node:child_process"
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { stateOf } from "#test/infra/process/Unreaped.ts"
import { ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import {
  freePort,
  root,
  type ServerProcess,
  serverEnvironment,
  startServer
} from "#test/harness/ServerProcess.ts"
import { until } from "#test/harness/Eventually.ts"

/** The embedded stores, also where the suite is given servers: an empty variable counts as unset. */
const embedded = { DATABASE_URL: "", CLICKHOUSE_URL: "" }

const userAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

const pageviews = async (server: ServerProcess, site: TestSite): Promise<number> => {
  const { body } = await ask(server, "GET", `/api/v1/sites/${site.id}/stats?period=24h`)
  return (body as { summary?: { pageviews: number } }).summary?.pageviews ?? -1
}

describe("a server whose data directory is damaged", () => {
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    server = await startServer({ env: embedded })
    site = await createSite(server)
    const events = Array.from({ length: 20 }, (_, index) => ({
      url: `https://example.com/${index}`,
      ip: "10.0.0.1",
      userAgent,
      id: `event-${index}`
    }))
    const { status } = await ask(server, "POST", "/api/v1/collect", { key: site.secret, json: events })
    assert.strictEqual(status, 202)
    assert.strictEqual(await pageviews(server, site), 20)
    await server.stop()
  })
  afterAll(() => server?.dispose())

  it("starts with a torn clickhouse.json and random ids, and names them", async () => {
    const published = join(server.dataDir, "clickhouse.json")
    truncateSync(published, 10)
    const ids = join(server.dataDir, "analytics", "ids", site.id)
    const table = join(ids, readdirSync(ids)[0] ?? "")
    writeFileSync(table, Buffer.alloc(readFileSync(table).length, 0xa5))
    await server.start()
    assert.strictEqual(await pageviews(server, site), 20)
    const reasonOf = async (id: string): Promise<string | undefined> => {
      const event = { url: "https://example.com/1", ip: "10.0.0.1", userAgent, id }
      const { body } = await ask(server, "POST", "/api/v1/collect", { key: site.secret, json: [event] })
      return (body as { results: ReadonlyArray<{ reason?: string }> }).results[0]?.reason
    }
    // The damage is found by the first look.
    await reasonOf("another")
    await until("the file is named", async () => (server.output().includes(table) ? undefined : "it is not"))
    await until("the ids are known again", async () => {
      const reason = await reasonOf("event-1")
      return reason === "duplicate" ? undefined : String(reason)
    })
    assert.include(server.output(), published)
    await server.stop()
  })

  it("whose engine is gone brings in what its logs have, and says what is gone", async () => {
    await server.stop()
    const engine = join(server.dataDir, "clickhouse", "engine")
    assert.isTrue(existsSync(engine))
    const before = server.output().length
    renameSync(engine, `${engine}.gone`)
    await server.start()
    assert.include(server.output().slice(before), engine)
    await until("the events are there again", async () => {
      const count = await pageviews(server, site)
      return count >= 20 ? undefined : `${count} of 20`
    })
    const { body } = await ask(server, "GET", "/readyz", { key: "" })
    assert.include(JSON.stringify(body), engine)
    assert.include(JSON.stringify(body), "degraded")
    await server.stop()
    await server.start()
    const next = await ask(server, "GET", "/readyz", { key: "" })
    assert.notInclude(JSON.stringify(next.body), engine)
    await server.stop()
  })
})

/** The children of a process, and theirs. */
const descendants = (pid: number): ReadonlyArray<number> => {
  const parents = new Map<number, number>()
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8")
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]))
    } catch {
      // It ended meanwhile.
      continue
    }
  }
  const below = (of: number): ReadonlyArray<number> =>
    [...parents].filter(([, parent]) => parent === of).flatMap(([child]) => [child, ...below(child)])
  return below(pid)
}

describe("a server that was killed with all of its processes", () => {
  it("starts at once, though it is not reaped", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-unreaped-"))
    const port = await freePort()
    const env = serverEnvironment({ ...embedded, PORT: String(port), DATA_DIR: dataDir })
    // The shell becomes `sleep`, which asks for no child that ended.
    const script = `"$0" "$1" >/dev/null 2>&1 & echo $!; exec sleep 600`
    const parent = spawn("sh", ["-c", script, process.execPath, join(root, "src/main.ts")], {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "inherit"]
    })
    try {
      let told = ""
      parent.stdout.on("data", (chunk) => (told += String(chunk)))
      const url = `http://127.0.0.1:${port}`
      await until("the first is ready", async () => {
        const answer = await fetch(`${url}/readyz`).catch((error: unknown) => String(error))
        return typeof answer !== "string" && answer.status === 200 ? undefined : String(answer)
      })
      const pid = Number(told.trim())
      for (const one of [pid, ...descendants(pid)]) process.kill(one, "SIGKILL")
      const next = await startServer({ dataDir, env: embedded })
      assert.strictEqual(stateOf(pid), "Z")
      await next.dispose()
    } finally {
      parent.kill("SIGKILL")
      rmSync(dataDir, { recursive: true, force: true })
    }
  })
})
