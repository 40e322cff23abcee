import { closedLoop } from "#bench/harness/ClosedLoop.ts"
import { startLoad } from "#bench/harness/HttpLoad.ts"
import { grownIn, metered, meteredInParts } from "#bench/harness/Meter.ts"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import { type CaseContext, type Measurement, type Size, sized } from "#bench/harness/Suite.ts"
import { warmUp } from "#bench/harness/WarmUp.ts"
import { type ModelName, shapes } from "./Answers.ts"
import { checked, runCalls, startCalls } from "./CallLoad.ts"
import { whileBooked } from "./Ledger.ts"
import { type Given, targetOf } from "./Stage.ts"
import { requestTo, type Target, type TargetName } from "./Targets.ts"

type Context = CaseContext<Given>

/** Measures a case at one of the stage's targets; our server has to have booked all of it afterwards. */
const at =
  (name: TargetName, measure: (target: Target, context: Context) => Promise<Measurement>) =>
  (context: Context): Promise<Measurement> => {
    const target = targetOf(context.given, name)
    return whileBooked(target.upstreamPort, target.ledger, () => measure(target, context))
  }

/** Streams that begin. */
const lightPerSecond = 50

/** A load at a light rate is long enough for its percentiles to mean something. */
const lightMillis = (context: Context): number =>
  sized(context, { tiny: 400, full: 2 * context.windowMillis })

const lightWarmUpMillis = (context: Context): number => sized(context, { tiny: 0, full: 500 })

/** Plain calls at a fixed rate, far below the most: how long each one waits. */
export const plainCallsAt = (ratePerSecond: number) => (name: TargetName) =>
  at(name, async (target, context) => {
    const durationMillis = lightMillis(context)
    const { result, use } = await metered(target.pid, () =>
      runCalls({
        port: target.port,
        request: requestTo(target, "bench/plain", false),
        pieces: 0,
        arrivals: { ratePerSecond, durationMillis },
        warmUpMillis: lightWarmUpMillis(context)
      })
    )
    return { work: result.calls, elapsedMillis: durationMillis, use, latency: result.whole }
  })

/** Streams at a light, fixed rate: how long the first piece waits, and how long each one is on its way. */
export const streamedCalls = (name: TargetName) =>
  at(name, async (target, context) => {
    const { chunks, everyMillis } = shapes["bench/short"]
    const durationMillis = lightMillis(context)
    const { result, use } = await metered(target.pid, () =>
      runCalls({
        port: target.port,
        request: requestTo(target, "bench/short", true),
        pieces: chunks,
        arrivals: { ratePerSecond: lightPerSecond, durationMillis },
        warmUpMillis: lightWarmUpMillis(context)
      })
    )
    const { maxMillis, p50Millis, p99Millis } = result.pieceDelay
    return {
      work: result.calls,
      elapsedMillis: durationMillis + chunks * everyMillis,
      use,
      latency: result.firstPiece,
      figures: {
        "piece p50 ms": p50Millis,
        "piece p99 ms": p99Millis,
        "CPU µs/piece": (use.cpuMillis * 1000) / result.pieces
      },
      details: { pieceMaxMillis: maxMillis, firstMaxMillis: result.firstPiece.maxMillis }
    }
  })

/** A fresh server compiles for its first 12,000 calls; with the flags of a comparison for its first 4,000. */
const warmUpOfOurs = (context: Context) => ({
  workMin: context.parts > 1 ? 5_000 : sized(context, { tiny: 1, quick: 8_000, full: 12_000 }),
  windowsMax: sized(context, { tiny: 1, quick: 60, full: 24 })
})

/** Plain calls, each connection as soon as it has its answer. */
export const mostCalls = (name: TargetName) =>
  at(name, async (target, context) => {
    const load = await startLoad({
      port: target.port,
      connections: sized(context, { tiny: 4, full: 64 }),
      requests: [requestTo(target, "bench/plain", false)],
      drains: true
    })
    try {
      // All garbage is collected every 14,000 calls: a window has to hold about as many on each side.
      const window = { ...context, windowMillis: context.windowMillis * (context.parts > 1 ? 2 : 1) }
      return await closedLoop(window, {
        pid: target.pid,
        load,
        status: "200",
        ...(name === "ours" ? { warmUp: warmUpOfOurs(context) } : {})
      })
    } finally {
      await load.stop()
    }
  })

interface Streams {
  readonly model: ModelName
  readonly together: number
}

const few: Streams = { model: "bench/long-tiny", together: 5 }

/** Few enough to be served at their pace: the cost of a piece alone. */
export const flowing: Readonly<Record<Size, Streams>> = {
  tiny: few,
  quick: { model: "bench/medium", together: 50 },
  full: { model: "bench/long", together: 50 }
}

/** About what the raw pipe serves on one core, 50,000 pieces a second: how many of them get through. */
const crowd: Streams = { model: "bench/crowd", together: 2_000 }
export const crowded: Readonly<Record<Size, Streams>> = { tiny: few, quick: crowd, full: crowd }

/** Streams that all run already. */
export const runningStreams = (sizes: Readonly<Record<Size, Streams>>) => (name: TargetName) =>
  at(name, async (target, context) => {
    const { model, together } = sizes[context.size]
    const calls = startCalls({
      port: target.port,
      request: requestTo(target, model, true),
      pieces: shapes[model].chunks,
      arrivals: { together },
      warmUpMillis: 0
    })
    await calls.ready()
    const pieces = async (): Promise<number> => (await calls.progress()).pieces
    // The answers end: they have to last for the window.
    const { chunks, everyMillis } = shapes[model]
    const windowMillis = Math.min(context.windowMillis, chunks * everyMillis * 0.5)
    await warmUp({ ...context, windowsMax: 2 }, async (millis) => {
      const cpu = cpuMillis(target.pid)
      const { work } = await grownIn(millis, pieces)
      return { work, cpuMillis: cpuMillis(target.pid) - cpu }
    })
    const { elapsedMillis, parts, use, work } = await meteredInParts(
      { ...context, windowMillis },
      target.pid,
      (millis) => grownIn(millis, pieces)
    )
    const result = await calls.result()
    // It closes some of thousands that begin at once.
    if (name !== "Portkey") checked(result)
    return {
      work,
      elapsedMillis,
      use,
      parts,
      latency: result.pieceDelay,
      figures: { "core busy %": (use.cpuMillis / elapsedMillis) * 100, "failed streams": result.failures }
    }
  })
