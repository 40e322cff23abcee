import { setTimeout as pause } from "node:timers/promises"
import { load } from "#bench/harness/HttpLoad.ts"
import { metered } from "#bench/harness/Meter.ts"
import { residentMiB } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import { shapes } from "./Answers.ts"
import { accountOf, untilIdle } from "./BenchUpstream.ts"
import { type CallLoad, checked, startCalls } from "./CallLoad.ts"
import { whileBooked } from "./Ledger.ts"
import { type Given, targetOf } from "./Stage.ts"
import { requestTo, startTarget, startUpstream, type Target, type TargetName } from "./Targets.ts"

const warmMillis = (context: CaseContext): number => sized(context, { tiny: 100, full: 2_000 })

/** A target without earlier calls: memory that an earlier load left behind would hide this one's. */
const fresh =
  (name: TargetName, measure: (target: Target, context: CaseContext) => Promise<Measurement>) =>
  async (context: CaseContext<Given>): Promise<Measurement> => {
    const booked = (target: Target): Promise<Measurement> =>
      whileBooked(target.upstreamPort, target.ledger, () => measure(target, context))
    // A tiny run only shows that the case works. Portkey goes on asking for clients that left, and every later case would
    // wait for that.
    if (context.size === "tiny" && name !== "Portkey") return booked(targetOf(context.given, name))
    const upstream = await startUpstream()
    try {
      const { stop, target } = await startTarget(name, upstream)
      try {
        // Code, pools and buffers are there before memory is looked at.
        const requests = [requestTo(target, "bench/plain", false)]
        await load({
          port: target.port,
          connections: 32,
          durationMillis: warmMillis(context),
          requests,
          drains: true
        })
        await untilIdle(target.upstreamPort)
        return await booked(target)
      } finally {
        await stop()
      }
    } finally {
      await upstream.stop()
    }
  }

const plainMillis = async (target: Target): Promise<number> => {
  const requests = [requestTo(target, "bench/plain", false)]
  const { latency } = await load({
    port: target.port,
    connections: 1,
    durationMillis: 2_000,
    count: 20,
    requests
  })
  return latency.p50Millis
}

/**
 * Many streams that have begun and are silent: the memory of each, once as many have used up the heap's slack. Then all
 * their clients leave at once: how long until the upstream is rid of the last one (10 s at most: Portkey goes on
 * asking, and ours listens for up to 5 s for the usage of a call), and its cost.
 */
export const idleStreams = (name: TargetName) =>
  fresh(name, async (target, context) => {
    const count = sized(context, { tiny: 20, full: 1_000 })
    const { left: leftBefore } = await accountOf(target.upstreamPort)
    const open = async (): Promise<{ readonly calls: CallLoad; readonly rssMiB: number }> => {
      const calls = startCalls({
        port: target.port,
        request: requestTo(target, "bench/idle", true),
        pieces: 1,
        arrivals: { together: count },
        warmUpMillis: 0
      })
      await calls.ready()
      // The garbage of opening them is collected at some later time.
      await pause(sized(context, { tiny: 100, full: 3_000 }))
      return { calls, rssMiB: residentMiB(target.pid) }
    }
    const first = await open()
    const second = await open()
    const plain = await plainMillis(target)
    const start = performance.now()
    const patienceMillis = sized(context, { tiny: 1_000, full: 10_000 })
    const {
      result: { open: asked },
      use
    } = await metered(target.pid, () => {
      first.calls.leave()
      second.calls.leave()
      return untilIdle(target.upstreamPort, patienceMillis)
    })
    const elapsedMillis = performance.now() - start
    await first.calls.result()
    await second.calls.result()
    const left = (await accountOf(target.upstreamPort)).left - leftBefore
    if (left + asked !== 2 * count)
      throw new Error(`The upstream was left by ${left} of ${2 * count} clients`)
    return {
      work: 2 * count,
      elapsedMillis,
      use,
      figures: {
        "KB/idle stream": ((second.rssMiB - first.rssMiB) * 1024) / count,
        "still asked of the upstream": asked,
        "plain call meanwhile ms": plain,
        "plain call after ms": await plainMillis(target)
      }
    }
  })

/** Clients that ask for much and read nothing for a while: the memory buffered for them, and that they get all. */
export const slowReaders = (name: TargetName) =>
  fresh(name, async (target, context) => {
    const model = sized(context, { tiny: "bench/flood-tiny", full: "bench/flood" })
    const count = sized(context, { tiny: 2, full: 20 })
    const before = residentMiB(target.pid)
    const calls = startCalls({
      port: target.port,
      request: requestTo(target, model, true),
      pieces: shapes[model].chunks,
      arrivals: { together: count },
      warmUpMillis: 0,
      readsLater: true
    })
    await calls.ready()
    await pause(sized(context, { tiny: 100, full: 3_000 }))
    const taken = residentMiB(target.pid) - before
    const plain = await plainMillis(target)
    const start = performance.now()
    const { result, use } = await metered(target.pid, async () => {
      calls.read()
      return checked(await calls.result())
    })
    return {
      work: result.pieces,
      elapsedMillis: performance.now() - start,
      use,
      figures: { "MB/slow reader": taken / count, "plain call meanwhile ms": plain }
    }
  })
