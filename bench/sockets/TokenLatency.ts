import { setTimeout as pause } from "node:timers/promises"
import { grownIn, meteredInParts } from "#bench/harness/Meter.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import { ofEach, type ServerName, type Stage, staged } from "./Stages.ts"

const sessionsOf = (context: CaseContext): number =>
  ofEach(context, sized(context, { tiny: 8, quick: 500, full: 1_000 }))

/** Sessions that stream 10 pieces a second each: how long a piece takes from the upstream's write to the client. */
export const tokenLatency = (name: ServerName) => staged(name, sessionsOf, measure, true)

const measure = async ({ context, load, server }: Stage): Promise<Measurement> => {
  const count = sessionsOf(context)
  const isTiny = context.size === "tiny"
  // A comparison has half of the sessions a side.
  const windowMillis = isTiny ? 300 : (context.parts > 1 ? 3 : 2) * context.windowMillis
  const spreadMillis = sized(context, { tiny: 50, quick: 1_000, full: 3_000 })
  // Prompts that begin cost far more than pieces that follow. What they left waiting, and the collection of garbage that they
  // bring about, belong to the start.
  const settleMillis = sized(context, { tiny: 50, quick: 2_000, full: 5_000 })
  const sockets = load(count)
  sockets.tell({ do: "attach" })
  await sockets.until(({ attached }) => attached === count, 30_000)
  const everyMillis = isTiny ? 20 : 100
  const pieces = isTiny ? 20 : Math.ceil((spreadMillis + settleMillis + windowMillis + 2_000) / everyMillis)
  // Both sides' pieces come in the same seconds.
  await context.meet(true)
  // At the tiny size all may be over before everybody speaks.
  if (isTiny) sockets.tell({ do: "measure", from: 0, count })
  sockets.tell({ do: "prompt", script: { pieces, everyMillis }, from: 0, count, overMillis: spreadMillis })
  await sockets.until(({ speaking }) => speaking === count, 30_000)
  await pause(settleMillis)
  sockets.tell({ do: "measure", from: 0, count })
  const { elapsedMillis, parts, use, work } = await meteredInParts(
    { ...context, windowMillis },
    server.pid(),
    (millis) => grownIn(millis, async () => (await sockets.progress()).pieces)
  )
  const { count: _, ...latency } = await sockets.latency()
  await sockets.until(({ whole }) => whole === count, 30_000)
  return {
    work,
    elapsedMillis,
    use,
    parts,
    latency,
    figures: { "max ms": latency.maxMillis, "core busy %": (use.cpuMillis / elapsedMillis) * 100 }
  }
}
