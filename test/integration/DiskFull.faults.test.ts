import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach, assert, beforeEach, it } from "@effect/vitest"
import { describeWith } from "#test/harness/Requirement.ts"
import { ask, createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { type BeaconLoad, startBeacons } from "./BeaconLoad.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { countedPageviews, discrepancies, drained, none, storedPaths } from "./StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"

const countOf = (load: BeaconLoad, ...wanted: ReadonlyArray<number>): number =>
  [...load.outcomes.values()].filter((status) => status !== undefined && wanted.includes(status)).length

/** Events go on being refused, or taken: more than ten of those that are sent from now on. */
const sees = (load: BeaconLoad, ...wanted: ReadonlyArray<number>): Promise<void> => {
  const before = countOf(load, ...wanted)
  return until(`answers of ${wanted.join(" or ")}`, () => {
    const more = countOf(load, ...wanted) - before
    return Promise.resolve(more > 10 ? undefined : `${more} of ${load.outcomes.size}`)
  })
}

describeWith(smallDisk, "a full disk", () => {
  let dataDir: string
  let disk: SmallDisk | undefined
  let server: ServerProcess | undefined

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "signalbox-"))
  })
  afterEach(async () => {
    await server?.dispose()
    disk?.remove()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  })

  const start = async (
    directory: string,
    mebibytes: number
  ): Promise<{
    readonly disk: SmallDisk
    readonly server: ServerProcess
    readonly site: TestSite
    readonly load: BeaconLoad
  }> => {
    disk = new SmallDisk(directory, mebibytes)
    server = await startServer({ dataDir, env: { TRUST_PROXY: "1" } })
    const site = await createSite(server)
    const load = startBeacons({ url: server.url, site: site.id, connections: 16, label: "full" })
    await sees(load, 202)
    return { disk, server, site, load }
  }

  const assertStored = async (from: ServerProcess, site: TestSite, load: BeaconLoad): Promise<void> => {
    const odd = [...load.outcomes.values()].filter((status) => ![202, 503, 507, undefined].includes(status))
    assert.deepStrictEqual(odd, [])
    await drained(from, site)
    const stored = await storedPaths(from, site)
    assert.deepStrictEqual(discrepancies(load.outcomes, stored), none)
    assert.strictEqual(await countedPageviews(from, site), stored.size)
  }

  it("under the event log refuses events with 507, and the log goes on by itself when space returns", async () => {
    const { disk, load, server, site } = await start(join(dataDir, "analytics", "log"), 8)
    await disk.fill()
    await sees(load, 507)
    // The log tries again and again, and may have found room for one of them.
    await until("it is not ready", async () => {
      const { body, status } = await ask(server, "GET", "/readyz", { key: "" })
      return status === 503 ? undefined : JSON.stringify(body)
    })
    assert.strictEqual((await ask(server, "GET", "/healthz", { key: "" })).status, 200)
    await sleep(500)
    await disk.free()
    await sees(load, 202)
    await server.stop("SIGKILL")
    await load.stop()
    await server.start()
    await assertStored(server, site, load)
  })

  it("that the log filled alone empties again as ClickHouse takes what it held", async () => {
    const { disk, load, server, site } = await start(join(dataDir, "analytics", "log"), 8)
    await disk.fill(256 * 1024)
    await sees(load, 507)
    await sees(load, 202)
    await load.stop()
    await assertStored(server, site, load)
  })

  it("under all of DATA_DIR, with both stores on it, loses nothing either", async () => {
    const { disk, load, server, site } = await start(dataDir, 768)
    await disk.fill()
    await sees(load, 507)
    // Small changes find room in pages that PostgreSQL has already.
    const fields = { name: "Full", domain: "full.example" }
    await until("a change is refused, and why is said", async () => {
      const made = await ask(server, "POST", "/api/v1/sites", { json: fields })
      const { error } = made.body as { error?: string }
      return made.status === 503 && /disk is full/.test(error ?? "")
        ? undefined
        : `${made.status} ${JSON.stringify(made.body)}`
    })
    const { components } = (await ask(server, "GET", "/readyz", { key: "" })).body as {
      components: Record<string, { status: string; detail?: string }>
    }
    assert.strictEqual(components["disk"]?.status, "degraded")
    await until("the log says it", () =>
      Promise.resolve(
        ["The disk is full", "PostgreSQL refuses changes: its disk is full"].find(
          (text) => !server.output().includes(text)
        )
      )
    )
    await sleep(2_000)
    await disk.free()
    await sees(load, 202)
    await load.stop()
    await assertStored(server, site, load)
    await until("writes work again", async () => {
      const made = await ask(server, "POST", "/api/v1/sites", { json: { name: "B", domain: "b.example" } })
      return made.status === 201 ? undefined : `${made.status} ${JSON.stringify(made.body)}`
    })
  })
})
