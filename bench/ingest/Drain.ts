import { setTimeout as sleep } from "node:timers/promises"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import { answered, load } from "#bench/harness/HttpLoad.ts"
import { beacons, connectionsOf, visitorsOf } from "./AcceptRate.ts"
import { type Given, storedEvents, watchMemory, withIngestServer } from "./IngestServer.ts"

const giveUpMillis = 300_000

/** From the first request until ClickHouse has every event, client, server and stores on the same cores. */
export const acceptAndDrain = (context: CaseContext<Given>): Promise<Measurement> =>
  withIngestServer(context, "shared", async (server) => {
    const { pid, port, site, storePid } = server
    const count = sized(context, { tiny: 2_000, quick: 50_000, full: 1_000_000 })
    const peak = watchMemory(server)
    const before = [cpuMillis(pid), cpuMillis(storePid)] as const
    const accepted = answered(
      await load({
        port,
        connections: connectionsOf(context),
        requests: beacons(site.id, visitorsOf(context), 1),
        count,
        durationMillis: giveUpMillis
      }),
      "202"
    )
    const loaded = performance.now()
    while ((await storedEvents(server, site)).rows < count) {
      if (performance.now() - loaded > giveUpMillis) throw new Error("The events do not come through")
      await sleep(20)
    }
    const drainMillis = performance.now() - loaded
    // A second copy of an event would be a row of its own, and may come late.
    await sleep(sized(context, { tiny: 0, quick: 500, full: 2_000 }))
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
