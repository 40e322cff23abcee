import type { Stage, StageContext } from "#bench/harness/Suite.ts"
import { load } from "#bench/harness/HttpLoad.ts"
import { shapes } from "./Answers.ts"
import { runCalls } from "./CallLoad.ts"
import { isPortkeyInstalled } from "./Portkey.ts"
import {
  requestTo,
  type StartedTarget,
  startTarget,
  startUpstream,
  type Target,
  type TargetName
} from "./Targets.ts"

/** The targets of every case, each asked by one case at a time. */
export interface Given {
  readonly targets: ReadonlyArray<Target>
}

export const targetOf = ({ targets }: Given, name: TargetName): Target => {
  const target = targets.find((one) => one.name === name)
  if (target === undefined) throw new Error(`${name} is not there`)
  return target
}

/** The code of streams is compiled before they are measured; plain calls are warmed where the most of them are measured. */
const warm = async (target: Target): Promise<void> => {
  const requests = [requestTo(target, "bench/plain", false)]
  await load({ port: target.port, connections: 16, durationMillis: 1_000, requests, drains: true })
  await runCalls({
    port: target.port,
    request: requestTo(target, "bench/short", true),
    pieces: shapes["bench/short"].chunks,
    arrivals: { ratePerSecond: 100, durationMillis: 1_000 },
    warmUpMillis: 0
  })
}

/** Cases that warm their target by themselves, named so after it. */
export const selfWarming = "most"

const needsWarmTargets = ({ cases, size }: StageContext): boolean =>
  size !== "tiny" && cases.some((name) => !name.endsWith(`(${selfWarming})`))

/** Targets that a case of those that will run asks; each case's name begins with its target's. */
const wanted = ({ cases }: StageContext): ReadonlyArray<TargetName> => {
  const names = ["direct", "raw pipe", "ours", "Portkey"] as const
  return names.filter(
    (name) => cases.some((one) => one.startsWith(name)) && (name !== "Portkey" || isPortkeyInstalled())
  )
}

export const stage = async (context: StageContext): Promise<Stage<Given>> => {
  const upstream = await startUpstream()
  const started: Array<StartedTarget> = []
  const leave = async (): Promise<void> => {
    for (const one of started) await one.stop()
    await upstream.stop()
  }
  try {
    for (const name of wanted(context)) started.push(await startTarget(name, upstream, context.kept))
    const targets = started.map(({ target }) => target)
    if (needsWarmTargets(context)) for (const target of targets) await warm(target)
    return { given: { targets }, leave }
  } catch (error) {
    await leave()
    throw error
  }
}
