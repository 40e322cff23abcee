import { setTimeout as pause } from "node:timers/promises"
import { meteredInTurns } from "#bench/harness/Meter.ts"
import { type Size, sized } from "#bench/harness/Suite.ts"
import { type ServerName, staged } from "./Stages.ts"

const sessionsOf = (size: Size): number => sized({ size }, { tiny: 8, quick: 500, full: 1_000 })

/** Sessions that stream 10 pieces a second each: how long a piece takes from the upstream's write to the client. */
export const tokenLatency = (name: ServerName) =>
  staged(name, sessionsOf, async ({ context, load, server }) => {
    const count = sessionsOf(context.size)
    const isTiny = context.size === "tiny"
    const windowMillis = isTiny ? 300 : 2 * context.windowMillis
    const spreadMillis = sized(context, { tiny: 50, quick: 1_000, full: 3_000 })
    const settleMillis = isTiny ? 50 : 1_000
    const sockets = load(count)
    sockets.tell({ do: "attach" })
    await sockets.until(({ attached }) => attached === count, 30_000)
    const everyMillis = isTiny ? 20 : 100
    // Every session streams during all of the window, and in a comparison during the other side's.
    const sides = context.parts > 1 ? 2 : 1
    const pieces = isTiny
      ? 20
      : Math.ceil((spreadMillis + settleMillis + sides * windowMillis + 2_000) / everyMillis)
    // At the tiny size all may be over before everybody speaks.
    if (isTiny) sockets.tell({ do: "measure", from: 0, count })
    sockets.tell({ do: "prompt", script: { pieces, everyMillis }, from: 0, count, overMillis: spreadMillis })
    await sockets.until(({ speaking }) => speaking === count, 30_000)
    await pause(settleMillis)
    sockets.tell({ do: "measure", from: 0, count })
    let elapsedMillis = 0
    const { results, use } = await meteredInTurns(
      { ...context, windowMillis },
      server.pid(),
      async (millis) => {
        const [before, start] = [(await sockets.progress()).pieces, performance.now()]
        await pause(millis)
        const received = (await sockets.progress()).pieces - before
        elapsedMillis += performance.now() - start
        return received
      }
    )
    const received = results.reduce((sum, part) => sum + part, 0)
    const { count: _, ...latency } = await sockets.latency()
    await sockets.until(({ whole }) => whole === count, 30_000)
    return {
      work: received,
      elapsedMillis,
      use,
      latency,
      figures: { "max ms": latency.maxMillis, "core busy %": (use.cpuMillis / elapsedMillis) * 100 }
    }
  })
