import { answered, type RunningLoad, together } from "./HttpLoad.ts"
import { meteredInTurns } from "./Meter.ts"
import { cpuMillis } from "./ProcessUse.ts"
import type { CaseContext, Measurement } from "./Suite.ts"
import { warmUp } from "./WarmUp.ts"

export interface LoadedServer {
  readonly pid: number
  /** as much as the server takes: every connection sends its next request as soon as it has its answer */
  readonly load: RunningLoad
  /** that every answer has to have */
  readonly status: string
}

/** Warms a server under load, then measures one window of it; for cases that are `inTurns`. */
export const closedLoop = async (
  context: CaseContext,
  { load, pid, status }: LoadedServer
): Promise<Measurement> => {
  const warm = await warmUp(context, async (millis) => {
    const before = cpuMillis(pid)
    const { requests } = answered(await load.window(millis), status)
    return { work: requests, cpuMillis: cpuMillis(pid) - before }
  })
  const { results, use } = await meteredInTurns(context, pid, load.window)
  const { elapsedMillis, latency, requests } = answered(together(results), status)
  const { maxMillis, p50Millis, p99Millis } = latency
  return {
    work: requests,
    elapsedMillis,
    use,
    latency: { p50Millis, p99Millis, maxMillis },
    figures: { "core busy %": (use.cpuMillis / elapsedMillis) * 100 },
    details: { warmUpMillis: warm.millis, steady: warm.isSteady ? 1 : 0 }
  }
}
