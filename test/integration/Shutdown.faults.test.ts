import { mkdtemp, rm } from "node:fs/promises"
import { Agent, get, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { limits } from "#src/Limits.ts"
import { isAlive } from "#src/infra/process/ProcessIdentity.ts"
import { createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { startBeacons } from "./BeaconLoad.ts"
import { freePort, runServer, type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import {
  discrepancies,
  drained,
  embeddedClickHouse,
  embeddedPostgresPid,
  none,
  storedPaths
} from "./StoredEvents.ts"

/** An upload of which half is sent; `finish` sends the rest and answers the status. */
const startUpload = async (server: ServerProcess): Promise<{ readonly finish: () => Promise<number> }> => {
  const boundary = "----signalbox-test"
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n` +
    "Content-Type: text/plain\r\n\r\n"
  const content = "x".repeat(100_000)
  const tail = `\r\n--${boundary}--\r\n`
  const upload = request(`${server.url}/api/v1/files`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${server.adminKey()}`,
      "content-type": `multipart/form-data; boundary=${boundary}`,
      "content-length": head.length + content.length + tail.length
    }
  })
  const status = new Promise<number>((resolve, reject) => {
    upload.on("response", (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    upload.on("error", reject)
  })
  // Its failure belongs to the code that finishes it.
  status.catch(() => 0)
  await new Promise<void>((resolve) => upload.write(head + content.slice(0, 50_000), () => resolve()))
  return {
    finish: () => {
      upload.end(content.slice(50_000) + tail)
      return status
    }
  }
}

/** The answers of `/readyz` on a connection that stays open: the listener closes soon after it has turned unready. */
const readinessOver = (server: ServerProcess, agent: Agent): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const request = get(`${server.url}/readyz`, { agent }, (response) => {
      response.resume()
      response.on("end", () => resolve(response.statusCode))
    })
    request.on("error", reject)
  })

describe("a server that is told to stop under load", () => {
  let server: ServerProcess
  let site: TestSite

  beforeAll(async () => {
    // The embedded PostgreSQL, also where the suite is given a server: an empty variable counts as unset.
    server = await startServer({ env: { TRUST_PROXY: "1", DATABASE_URL: "" } })
    site = await createSite(server)
  })
  afterEach(async () => {
    if (!isAlive(server.pid())) await server.start()
  })
  afterAll(() => server?.dispose())

  it("turns unready, finishes what is in flight, keeps what it accepted, ends its stores and exits 0", async () => {
    const stores = [embeddedClickHouse(server).pid, embeddedPostgresPid(server)]
    const load = startBeacons({ url: server.url, site: site.id, connections: 16, label: "stop" })
    const upload = await startUpload(server)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    assert.strictEqual(await readinessOver(server, agent), 200)
    await sleep(500)
    const since = performance.now()
    const code = server.stop("SIGTERM")
    // The upload keeps the server from going away meanwhile.
    let readiness: number | undefined
    while (readiness !== 503) readiness = await readinessOver(server, agent)
    agent.destroy()
    const uploaded = await upload.finish()
    assert.strictEqual(await code, 0, server.output())
    assert.isBelow(performance.now() - since, limits.drainMillis + limits.storeStopMillis)
    assert.strictEqual(uploaded, 200)
    assert.deepStrictEqual(stores.filter(isAlive), [])
    await load.stop()
    // Refused or cut, or answered as ever: nothing in between.
    const unexpected = [...load.outcomes.values()].filter(
      (outcome) => outcome !== undefined && outcome !== 202
    )
    assert.deepStrictEqual([...new Set(unexpected)], [])
    await server.start()
    await drained(server, site)
    assert.deepStrictEqual(discrepancies(load.outcomes, await storedPaths(server, site)), none)
  })

  it("takes more signals while it stops as the one that it has", async () => {
    const stores = [embeddedClickHouse(server).pid, embeddedPostgresPid(server)]
    const code = server.stop("SIGTERM")
    for (const signal of ["SIGTERM", "SIGINT", "SIGTERM"] as const) {
      await sleep(50)
      void server.stop(signal)
    }
    assert.strictEqual(await code, 0, server.output())
    assert.deepStrictEqual(stores.filter(isAlive), [])
  })

  it("tells a second server on the same DATA_DIR which process has it, and goes on", async () => {
    const second = await runServer({ DATA_DIR: server.dataDir, PORT: String(await freePort()) })
    assert.strictEqual(second.code, 1)
    assert.include(second.output, server.dataDir)
    assert.include(second.output, `in use by process ${server.pid()}`)
    assert.strictEqual((await fetch(`${server.url}/readyz`)).status, 200)
  })

  it("tells a second server on the same port that it is taken, and leaves no store of it behind", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-"))
    try {
      const port = new URL(server.url).port
      const second = await runServer({ DATA_DIR: dataDir, PORT: port })
      assert.strictEqual(second.code, 1, second.output)
      assert.match(
        second.output,
        new RegExp(`:${port}\\b.*another process may have the port|EADDRINUSE.*:${port}`)
      )
      assert.notMatch(second.output, /\n\s+at /, "a stack is no explanation")
      assert.isFalse(isAlive(embeddedClickHouse({ ...server, dataDir }).pid))
    } finally {
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    }
  })
})

describe("a configuration with faults", () => {
  it("is refused with all of them by name and exit code 78", async () => {
    const { code, output } = await runServer({
      PORT: "99999",
      BASE_URL: "ftp://example.com",
      DATABASE_URL: "mysql://localhost/x",
      TRUST_PROXY: "everybody",
      ROOMS: "kitchen",
      DATA_DIR: join(tmpdir(), "signalbox-never")
    })
    assert.strictEqual(code, 78, output)
    for (const name of ["PORT", "BASE_URL", "DATABASE_URL", "TRUST_PROXY", "ROOMS"]) {
      assert.match(output, new RegExp(`^\\s+${name} `, "m"))
    }
  })
})
