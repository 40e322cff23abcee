import { makeBarrier } from "./Barrier.ts"
import { failIfAborted, Interrupted, unlessAborted } from "./Interrupt.ts"
import { coreTime, stolenShareSince } from "./Machine.ts"
import type { SuiteHost } from "./SuiteHost.ts"
import type { MeasuredRun, Ran } from "./Store.ts"
import type { BenchCase, BenchSuite, Size } from "./Suite.ts"

/** So many rounds; or as many as fit into a time, between a least and a most. */
export type Rounds =
  | { readonly count: number }
  | { readonly withinMillis: number; readonly least: number; readonly most: number }

export interface PlannedCase {
  readonly name: string
  readonly sideBySide: boolean
}

export interface Plan {
  readonly suite: string
  /** in the suite's order */
  readonly cases: ReadonlyArray<PlannedCase>
  /** 1, or 2 where two trees are compared */
  readonly sides: number
  readonly rounds: Rounds
  readonly open: (side: number) => Promise<SuiteHost>
  /** before a case is run */
  readonly onStart?: (benchCase: string, round: number, side: number) => void
  readonly onRan: (ran: Ran) => void
  readonly onRound?: (round: number) => void
  /** asked once, after so many rounds: whether as many again follow */
  readonly isOpen?: (rounds: number) => boolean
  /** ends the run as soon as it fires; nothing is left in an orderly way then */
  readonly signal?: AbortSignal
}

const check = (suite: BenchSuite): void => {
  const names = new Set(suite.cases.map((one) => one.name))
  if (names.size !== suite.cases.length) throw new Error(`${suite.name}: two cases have one name`)
  const baselines = suite.cases.filter((one) => one.baseline === true).map((one) => one.group ?? "")
  if (new Set(baselines).size !== baselines.length)
    throw new Error(`${suite.name}: a group has two baselines`)
}

/** A name contains the pattern, in any case of letters; `*` stands for any text. */
const matches = (name: string, pattern: string): boolean => {
  const text = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll("*", ".*")
  return new RegExp(text, "i").test(name)
}

export interface Chosen {
  readonly cases: ReadonlyArray<BenchCase>
  readonly unavailable: ReadonlyArray<{ readonly case: string; readonly reason: string }>
}

export interface Choice {
  readonly patterns: ReadonlyArray<string>
  readonly size: Size
  /** only cases that measure the project's own code, unless patterns name others */
  readonly isComparison: boolean
  /** ends what a case fetches before it can run */
  readonly signal?: AbortSignal
}

/** Cases of a suite that match any of the patterns, apart from those that cannot run here. */
export const choose = async (suite: BenchSuite, choice: Choice): Promise<Chosen> => {
  check(suite)
  const { isComparison, patterns, signal, size } = choice
  // A whole name means that case, also where it is the beginning of others.
  const isName = (pattern: string): boolean => suite.cases.some(({ name }) => name === pattern)
  const isWanted = ({ compared, name }: BenchCase): boolean => {
    if (patterns.length > 0)
      return patterns.some((pattern) => (isName(pattern) ? name === pattern : matches(name, pattern)))
    if (!isComparison) return true
    return compared === "always" || (compared === "full" && size === "full")
  }
  const wanted = suite.cases.filter(isWanted)
  if (wanted.length === 0)
    throw new Error(
      patterns.length === 0
        ? `${suite.name} has no case that compares two trees`
        : `${suite.name} has no case like ${patterns.join(", ")}; it has:\n  ${suite.cases.map((one) => one.name).join("\n  ")}`
    )
  const cases: Array<BenchCase> = []
  const unavailable: Array<{ case: string; reason: string }> = []
  for (const one of wanted) {
    const reason = await one.unavailable?.(size, signal)
    if (reason === undefined) cases.push(one)
    else unavailable.push({ case: one.name, reason })
  }
  return { cases, unavailable }
}

const measureSide = async (
  plan: Plan,
  { name }: PlannedCase,
  round: number,
  side: number,
  run: () => Promise<MeasuredRun>
): Promise<void> => {
  plan.onStart?.(name, round, side)
  const startedAt = performance.now()
  const start = coreTime()
  const measured = await unlessAborted(plan.signal, run())
  const tookMillis = performance.now() - startedAt
  plan.onRan({ kind: "ran", case: name, round, side, tookMillis, stolen: stolenShareSince(start), measured })
}

/** Both sides at a time. */
const runSideBySide = async (
  plan: Plan,
  hosts: ReadonlyArray<SuiteHost>,
  round: number,
  one: PlannedCase
): Promise<void> => {
  const barrier = makeBarrier()
  const run = async (host: SuiteHost, side: number): Promise<MeasuredRun> => {
    try {
      return await host.run(one.name, round, barrier.meetOf(side))
    } finally {
      barrier.leave(side)
    }
  }
  await Promise.all(hosts.map((host, side) => measureSide(plan, one, round, side, () => run(host, side))))
}

/** All cases once. Every other round goes backwards; the two sides of a case take turns in being first. */
const runRound = async (plan: Plan, hosts: ReadonlyArray<SuiteHost>, round: number): Promise<void> => {
  const isBackwards = round % 2 === 1
  const sides = isBackwards ? hosts.map((_, side) => side).toReversed() : hosts.map((_, side) => side)
  for (const one of isBackwards ? plan.cases.toReversed() : plan.cases) {
    if (one.sideBySide && hosts.length > 1) await runSideBySide(plan, hosts, round, one)
    else
      for (const side of sides)
        await measureSide(plan, one, round, side, async () => {
          const run = await hosts[side]?.run(one.name, round)
          if (run === undefined) throw new Error(`there is no side ${side}`)
          return run
        })
  }
}

const leaveAll = (plan: Plan, hosts: ReadonlyArray<SuiteHost>): Promise<unknown> =>
  unlessAborted(plan.signal, Promise.all(hosts.map((host) => host.leave())))

/** Leaves the other side where one cannot be opened: what is measured next must not run beside it. */
const openAll = async (plan: Plan): Promise<ReadonlyArray<SuiteHost>> => {
  failIfAborted(plan.signal)
  const opening = Promise.allSettled(Array.from({ length: plan.sides }, (_, side) => plan.open(side)))
  const opened = await unlessAborted(plan.signal, opening)
  const hosts = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))
  const failed = opened.find((one) => one.status === "rejected")
  if (failed === undefined) return hosts
  await leaveAll(plan, hosts)
  throw failed.reason
}

/** Leaves the stage also where the work failed, but not where it was interrupted: the caller ends its processes. */
const withHosts = async <A>(
  plan: Plan,
  work: (hosts: ReadonlyArray<SuiteHost>) => Promise<A>
): Promise<A> => {
  const hosts = await openAll(plan)
  const result = await work(hosts).catch(async (error: unknown) => {
    if (!(error instanceof Interrupted)) await leaveAll(plan, hosts)
    throw error
  })
  await leaveAll(plan, hosts)
  return result
}

/** Whether another round begins, after so many that took so long. */
const goesOn = (rounds: Rounds, done: number, sinceMillis: number): boolean => {
  if ("count" in rounds) return done < rounds.count
  if (done < rounds.least) return true
  const perRound = sinceMillis / done
  return done < rounds.most && sinceMillis + perRound <= rounds.withinMillis
}

/**
 * Runs the rounds. One tree: its stage is set up once. Two trees: both stages are set up anew for each round, so that
 * the luck of a single process (its memory layout, its compiler's choices) counts as noise between rounds.
 */
export const runPlan = async (plan: Plan): Promise<void> => {
  const startedAt = performance.now()
  const isOn = (done: number): boolean => goesOn(plan.rounds, done, performance.now() - startedAt)
  const rounds = async (hosts?: ReadonlyArray<SuiteHost>): Promise<void> => {
    const runNext = async (round: number): Promise<void> => {
      plan.onRound?.(round)
      if (hosts === undefined) await withHosts(plan, (own) => runRound(plan, own, round))
      else await runRound(plan, hosts, round)
    }
    let done = 0
    while (isOn(done)) await runNext(done++)
    const most = plan.isOpen?.(done) === true ? 2 * done : done
    while (done < most) await runNext(done++)
  }
  await (plan.sides === 1 ? withHosts(plan, rounds) : rounds())
}
