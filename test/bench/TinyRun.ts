import { machine } from "#bench/harness/Machine.ts"
import { choose, runPlan } from "#bench/harness/Runner.ts"
import type { Ran, StoredRun } from "#bench/harness/Store.ts"
import type { BenchSuite, Settings } from "#bench/harness/Suite.ts"
import { openHere } from "#bench/harness/SuiteHost.ts"

export interface TinyOptions {
  readonly rounds: number
  readonly sides?: number
  readonly patterns?: ReadonlyArray<string>
  readonly settings?: Settings
  readonly signal?: AbortSignal
  readonly onRan?: (ran: Ran) => void
  readonly isOpen?: (rounds: number) => boolean
}

/** Runs a suite at its tiny size in this process; answers what a stored run holds. */
export const runTiny = async (suite: BenchSuite, options: TinyOptions): Promise<StoredRun> => {
  const { patterns = [], rounds, settings = {}, sides = 1 } = options
  const size = "tiny"
  const windowMillis = 200
  const { cases, unavailable } = await choose(suite, { patterns, size, isComparison: sides > 1 })
  const names = cases.map(({ name }) => name)
  const stored = cases.map(({ baseline = false, group = "", sideBySide = false, name }) => ({
    name,
    group,
    baseline,
    sideBySide
  }))
  const ran: Array<Ran> = []
  await runPlan({
    suite: suite.name,
    cases: stored,
    sides,
    rounds: { count: rounds },
    open: () => openHere(suite, { size, windowMillis, settings, cases: names }),
    onRan: (one) => {
      ran.push(one)
      options.onRan?.(one)
    },
    ...(options.isOpen === undefined ? {} : { isOpen: options.isOpen }),
    ...(options.signal === undefined ? {} : { signal: options.signal })
  })
  return {
    begun: {
      kind: "begun",
      run: "a-run",
      at: "2026-11-22T00:00:00.000Z",
      suite: suite.name,
      about: suite.about,
      unit: suite.unit,
      size,
      windowMillis,
      settings,
      machine: machine(0),
      sides: Array.from({ length: sides }, (_, side) => `commit-${side}`),
      cases: stored,
      unavailable
    },
    ran,
    leftOpen: undefined,
    ended: { kind: "ended", at: "2026-11-22T00:01:00.000Z", warnings: [] }
  }
}
