import { setTimeout as sleep } from "node:timers/promises"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import type { CaseContext, Measurement } from "#bench/harness/Suite.ts"
import { beacons, connectionsOf, loadAccepted, visitorsOf } from "./AcceptRate.ts"
import { storedEvents, watchMemory, withIngestServer } from "./IngestServer.ts"

const giveUpMillis = 300_000

/** From the first request until ClickHouse has every event, client, server and stores on the same cores. */
export const acceptAndDrain = (context: CaseContext): Promise<Measurement> =>
  withIngestServer({ directory: context.directory, cores: "shared" }, async (server) => {
    const { pid, port, site, storePid } = server
    const count = context.quick ? 2_000 : 1_000_000
    const peak = watchMemory(server)
    const before = [cpuMillis(pid), cpuMillis(storePid)] as const
    const accepted = await loadAccepted({
      port,
      connections: connectionsOf(context),
      requests: beacons(site.id, visitorsOf(context), 1),
      count,
      durationMillis: giveUpMillis
    })
    const loaded = performance.now()
    while ((await storedEvents(server, site)).rows < count) {
      if (performance.now() - loaded > giveUpMillis) throw new Error("The events do not come through")
      await sleep(20)
    }
    const drainMillis = performance.now() - loaded
    // A second copy of an event would be a row of its own, and may come late.
    await sleep(context.quick ? 0 : 2000)
    const { events, rows } = await storedEvents(server, site)
    if (rows !== count || events !== count)
      throw new Error(`${count} accepted, ${events} stored, in ${rows} rows`)
    const [server0, store0] = before
    const serverMillis = cpuMillis(pid) - server0
    const storeMillis = cpuMillis(storePid) - store0
    return {
      work: count,
      elapsedMillis: accepted.elapsedMillis + drainMillis,
      cpuMillis: serverMillis + storeMillis,
      figures: {
        "accepted/s": accepted.requestsPerSecond,
        "drain s": drainMillis / 1000,
        "server µs": (serverMillis * 1000) / count,
        "ClickHouse µs": (storeMillis * 1000) / count,
        "RSS MiB": peak()
      },
      result: String(rows)
    }
  })
