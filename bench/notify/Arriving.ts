import { metered } from "#bench/harness/Meter.ts"
import { type BenchCase, latencyOf, sized } from "#bench/harness/Suite.ts"
import { openLoop } from "./OpenLoop.ts"
import { arrivalsAt, resetSink } from "./PushSink.ts"
import { type Given, newKey, send, silence, untilQuiet } from "./Stage.ts"

/**
 * From the answer 201 to the request at the push service, at 100 messages a second to channels in turn. `noise`: with 50
 * channels whose service hangs and 50 whose service answers 429, all of which have messages waiting.
 */
export const arriving =
  (noise: boolean): BenchCase<Given>["run"] =>
  async (context) => {
    const { given } = context
    const { noisy, pid, sinkPort, walkers } = given
    const key = await newKey(given, ...walkers)
    await untilQuiet(given)
    if (noise) {
      const noisyKey = await newKey(given, noisy)
      for (let n = 0; n < 5; n++) await send(given, noisyKey)
    }
    const project = (n: number) => walkers[n % walkers.length] ?? ""
    await resetSink(sinkPort)
    for (const one of walkers) await send(given, key, one)
    await arrivalsAt(sinkPort, walkers.length)
    await resetSink(sinkPort)
    const count = sized(context, { tiny: 20, quick: 300, full: 2_000 })
    const answeredAt = new Map<string, Array<number>>()
    const startedAt = performance.now()
    const { result, use } = await metered(pid, async () => {
      await openLoop(100, count, async (n) => {
        await send(given, key, project(n))
        const at = performance.timeOrigin + performance.now()
        answeredAt.set(project(n), [...(answeredAt.get(project(n)) ?? []), at])
      })
      return arrivalsAt(sinkPort, count)
    })
    if (noise) await silence(given)
    const millis = result.names.map((name, n) => {
      const answered = answeredAt.get(name.slice(0, name.lastIndexOf("-")))?.shift() ?? Number.NaN
      // It may be on its way before the answer is read.
      return Math.max(0, (result.atMillis[n] ?? 0) - answered)
    })
    return {
      work: count,
      elapsedMillis: performance.now() - startedAt,
      use,
      latency: latencyOf(Float64Array.from(millis))
    }
  }
