import { answered, type RunningLoad, together } from "./HttpLoad.ts"
import { meteredInParts } from "./Meter.ts"
import { threadMillis } from "./ProcessUse.ts"
import type { CaseContext, Measurement } from "./Suite.ts"
import { warmUp, type WarmUpOptions } from "./WarmUp.ts"

export interface LoadedServer {
  readonly pid: number
  /** as much as the server takes: every connection sends its next request as soon as it has its answer */
  readonly load: RunningLoad
  /** that every answer has to have */
  readonly status: string
  /** of its warm-up: the more code a request runs, the longer it is compiled */
  readonly warmUp?: Pick<WarmUpOptions, "workMin" | "windowsMax">
}

/** Windows of a warm-up are too short for the 10 ms steps of `cpuMillis`. */
const exactMillis = (pid: number): number =>
  Object.values(threadMillis(pid)).reduce((sum, millis) => sum + millis, 0)

/**
 * Warms a server under load, then measures one window of it; for cases that are `sideBySide`. Both sides of a comparison warm
 * up at a time, too: one that stood still while the other one warmed up was slower afterwards.
 */
export const closedLoop = async (
  context: CaseContext,
  { load, pid, status, warmUp: warmUpOptions }: LoadedServer
): Promise<Measurement> => {
  const warm = await warmUp({ ...context, ...warmUpOptions }, async (millis) => {
    const before = exactMillis(pid)
    const { requests } = answered(await load.window(millis), status)
    return { work: requests, cpuMillis: exactMillis(pid) - before }
  })
  const { elapsedMillis, parts, results, use, work } = await meteredInParts(context, pid, async (millis) => {
    const result = answered(await load.window(millis), status)
    return { result, work: result.requests, elapsedMillis: result.elapsedMillis }
  })
  const { maxMillis, p50Millis, p99Millis } = together(results).latency
  return {
    work,
    elapsedMillis,
    use,
    parts,
    latency: { p50Millis, p99Millis, maxMillis },
    figures: { "core busy %": (use.cpuMillis / elapsedMillis) * 100 },
    details: { warmUpMillis: warm.millis, steady: warm.isSteady ? 1 : 0 }
  }
}
