import type { Stage, StageContext } from "#bench/harness/Suite.ts"
import { load } from "#bench/harness/HttpLoad.ts"
import { shapes } from "./Answers.ts"
import { runCalls } from "./CallLoad.ts"
import { portkeyNote, unavailablePortkey } from "./Portkey.ts"
import {
  requestTo,
  type StartedTarget,
  startTarget,
  startUpstream,
  type Target,
  type TargetName
} from "./Targets.ts"

/** What every case is given: the targets that are there, each asked by one case at a time. */
export interface Given {
  readonly targets: ReadonlyArray<Target>
}

export const targetOf = ({ targets }: Given, name: TargetName): Target => {
  const target = targets.find((one) => one.name === name)
  if (target === undefined) throw new Error(`${name} is not there`)
  return target
}

/** A server that has just begun is code that is still being compiled. */
const warm = async (target: Target): Promise<void> => {
  const requests = [requestTo(target, "bench/plain", false)]
  await load({ port: target.port, connections: 16, durationMillis: 2_000, requests, drains: true })
  await runCalls({
    port: target.port,
    request: requestTo(target, "bench/short", true),
    pieces: shapes["bench/short"].chunks,
    arrivals: { ratePerSecond: 50, durationMillis: 2_000 },
    warmUpMillis: 0
  })
}

export const stage = async ({ quick }: StageContext): Promise<Stage<Given>> => {
  const upstream = await startUpstream()
  const started: Array<StartedTarget> = []
  const leave = async (): Promise<void> => {
    for (const one of started) await one.stop()
    await upstream.stop()
  }
  try {
    for (const name of ["direct", "raw pipe", "ours"] as const)
      started.push(await startTarget(name, upstream))
    if (unavailablePortkey({ quick }) === undefined) {
      if (!quick) console.log(portkeyNote)
      started.push(await startTarget("Portkey", upstream))
    }
    const targets = started.map(({ target }) => target)
    if (!quick) for (const target of targets) await warm(target)
    return { given: { targets }, leave }
  } catch (error) {
    await leave()
    throw error
  }
}
