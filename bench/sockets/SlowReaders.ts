import { setTimeout as pause } from "node:timers/promises"
import { startMeter } from "#bench/harness/Meter.ts"
import { residentMiB } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, sized } from "#bench/harness/Suite.ts"
import { staged } from "./Stages.ts"

const crowdOf = (context: CaseContext): number => sized(context, { tiny: 2, full: 20 })
const othersOf = (context: CaseContext): number => sized(context, { tiny: 6, full: 200 })

/**
 * A crowd whose tools print 8 MiB each within 4 s, echoed to them by the server. With `reads` false they read nothing
 * of it for a while: measures the server's buffers for them, the delay of others that stream 10 pieces a second, and
 * that all finish.
 */
export const slowReaders = (reads: boolean) =>
  staged(
    "ours",
    (context) => crowdOf(context) + othersOf(context),
    async ({ context, load, server }) => {
      const [crowdCount, othersCount] = [crowdOf(context), othersOf(context)]
      const isTiny = context.size === "tiny"
      const [crowd, others] = [load(crowdCount), load(othersCount)]
      crowd.tell({ do: "attach" })
      others.tell({ do: "attach" })
      await crowd.until(({ attached }) => attached === crowdCount, 30_000)
      await others.until(({ attached }) => attached === othersCount, 30_000)
      const calling = { calls: 8, tool: "bash", pieces: 4, everyMillis: 10 } as const
      crowd.tell({ do: "prompt", script: calling, from: 0, count: crowdCount, overMillis: 10 })
      await crowd.until(({ holding }) => holding === crowdCount, 30_000)
      const script = {
        pieces: sized(context, { tiny: 20, full: 150 }),
        everyMillis: isTiny ? 20 : 100
      }
      await server.collectGarbage()
      const before = residentMiB(server.pid())
      const stopMeter = await startMeter(server.pid())
      const start = performance.now()
      others.tell({ do: "measure", from: 0, count: othersCount })
      others.tell({ do: "prompt", script, from: 0, count: othersCount, overMillis: isTiny ? 10 : 1_000 })
      await others.until(({ speaking }) => speaking === othersCount, 30_000)
      const print = {
        framesPerCall: isTiny ? 4 : 64,
        overMillis: sized(context, { tiny: 40, full: 4_000 }),
        reads
      }
      crowd.tell({ do: "print", print, from: 0, count: crowdCount })
      await pause(sized(context, { tiny: 300, full: 8_000 }))
      const { count: pieces, ...latency } = await others.latency()
      const elapsedMillis = performance.now() - start
      const use = await stopMeter()
      await server.collectGarbage()
      const kept = residentMiB(server.pid()) - before
      crowd.tell({ do: "read", from: 0, count: crowdCount })
      await crowd.until(({ whole }) => whole === crowdCount, 60_000)
      await others.until(({ whole }) => whole === othersCount, 60_000)
      const { gaps, slow } = await crowd.progress()
      return {
        work: pieces,
        elapsedMillis,
        use,
        latency,
        figures: { "MiB/reader of the crowd": kept / crowdCount, "closed with 4013": slow },
        details: { maxMillis: latency.maxMillis, replayGaps: gaps }
      }
    }
  )
