import { load } from "#bench/harness/HttpLoad.ts"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import type { CaseContext, Measurement } from "#bench/harness/Suite.ts"
import { shapes } from "./Answers.ts"
import { checked, runCalls, startCalls } from "./CallLoad.ts"
import { whileBooked } from "./Ledger.ts"
import { type Given, targetOf } from "./Stage.ts"
import { requestTo, type Target, type TargetName } from "./Targets.ts"

type Context = CaseContext<Given>

/** What a case measures at one of the stage's targets; ours has to have booked all of it afterwards. */
const at =
  (name: TargetName, measure: (target: Target, context: Context) => Promise<Measurement>) =>
  (context: Context): Promise<Measurement> => {
    const target = targetOf(context.given, name)
    return whileBooked(target.upstreamPort, target.ledger, () => measure(target, context))
  }

const ratePerSecond = 50

/** Plain calls at a light, fixed rate: what each waits for. */
export const plainCalls = (name: TargetName) =>
  at(name, async (target, { quick }) => {
    const durationMillis = quick ? 400 : 8_000
    const before = cpuMillis(target.pid)
    const result = checked(
      await runCalls({
        port: target.port,
        request: requestTo(target, "bench/plain", false),
        pieces: 0,
        arrivals: { ratePerSecond, durationMillis },
        warmUpMillis: quick ? 0 : 500
      })
    )
    return {
      work: result.calls,
      elapsedMillis: durationMillis,
      cpuMillis: cpuMillis(target.pid) - before,
      latency: result.whole
    }
  })

/** Streams at a light, fixed rate: what the first piece waits for, and every one on its way. */
export const streamedCalls = (name: TargetName) =>
  at(name, async (target, { quick }) => {
    const { chunks, everyMillis } = shapes["bench/short"]
    const durationMillis = quick ? 400 : 7_000
    const before = cpuMillis(target.pid)
    const result = checked(
      await runCalls({
        port: target.port,
        request: requestTo(target, "bench/short", true),
        pieces: chunks,
        arrivals: { ratePerSecond, durationMillis },
        warmUpMillis: quick ? 0 : 500
      })
    )
    const used = cpuMillis(target.pid) - before
    const { maxMillis, p50Millis, p99Millis } = result.pieceDelay
    return {
      work: result.calls,
      elapsedMillis: durationMillis + chunks * everyMillis,
      cpuMillis: used,
      latency: result.firstPiece,
      figures: {
        "piece p50 ms": p50Millis,
        "piece p99 ms": p99Millis,
        "CPU µs/piece": (used * 1000) / result.pieces
      },
      details: { pieceMaxMillis: maxMillis, firstMaxMillis: result.firstPiece.maxMillis }
    }
  })

/** Plain calls, each connection as soon as it has its answer. */
export const mostCalls = (name: TargetName) =>
  at(name, async (target, { quick }) => {
    const requests = [requestTo(target, "bench/plain", false)]
    const common = { port: target.port, connections: quick ? 4 : 64, requests, drains: true }
    await load({ ...common, durationMillis: quick ? 50 : 1_000 })
    const before = cpuMillis(target.pid)
    const result = await load({ ...common, durationMillis: quick ? 300 : 4_000 })
    const used = cpuMillis(target.pid) - before
    if (result.errors > 0 || (result.statuses["200"] ?? 0) !== result.requests)
      throw new Error(`Unexpected answers: ${JSON.stringify(result.statuses)}, ${result.errors} errors`)
    const { maxMillis, p50Millis, p99Millis } = result.latency
    return {
      work: result.requests,
      elapsedMillis: result.elapsedMillis,
      cpuMillis: used,
      latency: { p50Millis, p99Millis, maxMillis },
      figures: { "core busy %": (used / result.elapsedMillis) * 100 }
    }
  })

/** Streams that all run already: what a piece alone costs. */
export const flowingPieces = (name: TargetName) =>
  at(name, async (target, { quick }) => {
    const model = quick ? "bench/long-quick" : "bench/long"
    const calls = startCalls({
      port: target.port,
      request: requestTo(target, model, true),
      pieces: shapes[model].chunks,
      arrivals: { together: quick ? 5 : 50 },
      warmUpMillis: 0
    })
    await calls.ready()
    const window = async (): Promise<Measurement> => {
      await new Promise((resolve) => setTimeout(resolve, quick ? 50 : 1_000))
      const [cpu, start, { pieces }] = [cpuMillis(target.pid), performance.now(), await calls.progress()]
      await new Promise((resolve) => setTimeout(resolve, quick ? 200 : 4_000))
      const later = await calls.progress()
      return {
        work: later.pieces - pieces,
        elapsedMillis: performance.now() - start,
        cpuMillis: cpuMillis(target.pid) - cpu
      }
    }
    const measured = await window()
    const result = checked(await calls.result())
    return {
      ...measured,
      latency: result.pieceDelay,
      figures: { "core busy %": ((measured.cpuMillis ?? 0) / measured.elapsedMillis) * 100 }
    }
  })
