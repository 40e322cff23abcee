import { setTimeout as pause } from "node:timers/promises"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import { type ServerName, staged } from "./Stages.ts"

const sessionsOf = (quick: boolean): number => (quick ? 8 : 1_000)

/** Sessions that stream 10 pieces a second each: how long a piece takes from the upstream's write to the client. */
export const tokenLatency = (name: ServerName) =>
  staged(name, sessionsOf, async ({ context: { quick }, load, server }) => {
    const count = sessionsOf(quick)
    const windowMillis = quick ? 300 : 8_000
    const sockets = load(count)
    sockets.tell({ do: "attach" })
    await sockets.until(({ attached }) => attached === count, 30_000)
    const script = { pieces: quick ? 20 : 160, everyMillis: quick ? 20 : 100 }
    // At the tiny size all may be over before everybody speaks.
    if (quick) sockets.tell({ do: "measure", from: 0, count })
    sockets.tell({ do: "prompt", script, from: 0, count, overMillis: quick ? 50 : 3_000 })
    await sockets.until(({ speaking }) => speaking === count, 30_000)
    await pause(quick ? 50 : 1_000)
    const cpu = cpuMillis(server.pid())
    const start = performance.now()
    sockets.tell({ do: "measure", from: 0, count })
    await pause(windowMillis)
    const { count: pieces, ...latency } = await sockets.latency()
    const elapsedMillis = performance.now() - start
    const used = cpuMillis(server.pid()) - cpu
    await sockets.until(({ whole }) => whole === count, 30_000)
    return {
      work: pieces,
      elapsedMillis,
      cpuMillis: used,
      latency,
      figures: { "max ms": latency.maxMillis, "core busy %": (used / elapsedMillis) * 100 }
    }
  })
