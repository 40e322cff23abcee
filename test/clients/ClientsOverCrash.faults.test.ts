import { assert, it } from "@effect/vitest"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { createSite, type TestSite } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { drained, storedPaths } from "#test/integration/StoredEvents.ts"
import { until } from "#test/harness/Eventually.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { type ClientHost, download, languages, startHost } from "./ClientHost.ts"

const kills = 2
const eventsAtOnce = 10
const patienceSeconds = 60

const interpreters = requirement(
  "Node, Python and PHP",
  () => languages.map(({ present }) => present).find(({ available }) => !available)?.reason
)

/** Records without end until it is stopped; answers the paths that were recorded. */
const recording = (host: ClientHost, prefix: string) => {
  const paths: Array<string> = []
  const state = { isRunning: true }
  const loop = async (): Promise<ReadonlyArray<string>> => {
    while (state.isRunning) {
      const events = Array.from({ length: eventsAtOnce }, (_, index) => ({
        url: `/${prefix}/${paths.length + index}`,
        visitor: "v"
      }))
      await host.record(events)
      paths.push(...events.map(({ url }) => url))
      // A busy loop would starve the server that is starting.
      await sleep(50)
    }
    return paths
  }
  const done = loop()
  return {
    recorded: () => paths.length,
    stop: () => {
      state.isRunning = false
      return done
    }
  }
}

describeWith(interpreters, "the clients, while the server is killed with SIGKILL and started again,", () => {
  it("deliver every event exactly once", async () => {
    const directory = await mkdtemp(join(tmpdir(), "clients-"))
    const server = await startServer()
    const hosts: Array<ClientHost> = []
    try {
      const site = await createSite(server)
      const loads: Array<ReturnType<typeof recording>> = []
      for (const language of languages) {
        const host = startHost(language, await download(server, language, directory))
        hosts.push(host)
        await host.tell("make", { secret: site.secret })
        loads.push(recording(host, language.name))
      }
      const stored = () => countsByLanguage(server, site)
      for (let kill = 0; kill < kills; kill++) {
        const before = await stored()
        await until("every client's events are stored", async () => {
          const now = await stored()
          return languages.find(({ name }) => (now.get(name) ?? 0) <= (before.get(name) ?? 0))?.name
        })
        await server.stop("SIGKILL")
        const recorded = loads.map((load) => load.recorded())
        await until("events are recorded while the server is away", async () =>
          loads.every((load, index) => load.recorded() > (recorded[index] ?? 0) + 5 * eventsAtOnce)
            ? undefined
            : "some"
        )
        await server.start()
      }
      const expected = (await Promise.all(loads.map((load) => load.stop()))).flat()
      for (const host of hosts) {
        assert.isTrue(await host.tell("flush", { seconds: patienceSeconds }))
        assert.deepStrictEqual(await host.told(), { dropped: 0, errors: [] })
        assert.deepStrictEqual(await host.end(), { code: 0, complaints: "" })
      }
      await drained(server, site)
      const paths = await storedPaths(server, site)
      assert.deepStrictEqual([...paths.keys()].toSorted(), expected.toSorted())
      assert.deepStrictEqual(
        [...paths].filter(([, count]) => count !== 1),
        []
      )
    } finally {
      await Promise.all(hosts.map((host) => host.kill()))
      await server.dispose()
      await rm(directory, { recursive: true, force: true })
    }
  })
})

/** The number of stored events of each client. */
const countsByLanguage = async (
  server: ServerProcess,
  site: TestSite
): Promise<ReadonlyMap<string, number>> => {
  await drained(server, site)
  const counts = new Map<string, number>()
  for (const path of (await storedPaths(server, site)).keys()) {
    const name = path.split("/")[1] ?? ""
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}
