import { setTimeout as pause } from "node:timers/promises"
import { cpuMillis, residentMiB } from "#bench/harness/ProcessUse.ts"
import { staged } from "./Stages.ts"

const crowdOf = (quick: boolean): number => (quick ? 2 : 20)
const othersOf = (quick: boolean): number => (quick ? 6 : 200)

/**
 * A crowd whose tools print 8 MiB each within 4 s, which the server tells them of, as it does everybody. With `reads` false they
 * read nothing of it for a while: what the server keeps for them, what others who stream 10 pieces a second notice, and
 * that everybody comes to the end in the end.
 */
export const slowReaders = (reads: boolean) =>
  staged(
    "ours",
    (quick) => crowdOf(quick) + othersOf(quick),
    async ({ context: { quick }, load, server }) => {
      const [crowdCount, othersCount] = [crowdOf(quick), othersOf(quick)]
      const [crowd, others] = [load(crowdCount), load(othersCount)]
      crowd.tell({ do: "attach" })
      others.tell({ do: "attach" })
      await crowd.until(({ attached }) => attached === crowdCount, 30_000)
      await others.until(({ attached }) => attached === othersCount, 30_000)
      const calling = { calls: 8, tool: "bash", pieces: 4, everyMillis: 10 } as const
      crowd.tell({ do: "prompt", script: calling, from: 0, count: crowdCount, overMillis: 10 })
      await crowd.until(({ holding }) => holding === crowdCount, 30_000)
      const script = { pieces: quick ? 20 : 150, everyMillis: quick ? 20 : 100 }
      await server.collectGarbage()
      const before = residentMiB(server.pid())
      const cpu = cpuMillis(server.pid())
      const start = performance.now()
      others.tell({ do: "measure", from: 0, count: othersCount })
      others.tell({ do: "prompt", script, from: 0, count: othersCount, overMillis: quick ? 10 : 1_000 })
      await others.until(({ speaking }) => speaking === othersCount, 30_000)
      const print = { framesPerCall: quick ? 4 : 64, overMillis: quick ? 40 : 4_000, reads }
      crowd.tell({ do: "print", print, from: 0, count: crowdCount })
      await pause(quick ? 300 : 8_000)
      const { count: pieces, ...latency } = await others.latency()
      const elapsedMillis = performance.now() - start
      const used = cpuMillis(server.pid()) - cpu
      await server.collectGarbage()
      const kept = residentMiB(server.pid()) - before
      crowd.tell({ do: "read", from: 0, count: crowdCount })
      await crowd.until(({ whole }) => whole === crowdCount, 60_000)
      await others.until(({ whole }) => whole === othersCount, 60_000)
      const { gaps, slow } = await crowd.progress()
      return {
        work: pieces,
        elapsedMillis,
        cpuMillis: used,
        latency,
        figures: { "MiB/reader of the crowd": kept / crowdCount, "closed with 4013": slow },
        details: { maxMillis: latency.maxMillis, replayGaps: gaps }
      }
    }
  )
