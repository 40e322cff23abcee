import { claimed, type Difference, falseClaimChance, paired, unpaired } from "./Paired.ts"
import type { Part } from "./Suite.ts"
import type { MeasuredRun, StoredCase, StoredRun } from "./Store.ts"

export interface CaseSummary {
  readonly case: string
  readonly group: string
  readonly rounds: number
  /** medians over the rounds */
  readonly perSecond: number
  readonly cpuMicrosPerUnit: number
  readonly p50Millis: number | undefined
  readonly p99Millis: number | undefined
  readonly figures: Readonly<Record<string, number>>
  readonly slowestPerSecond: number
  readonly fastestPerSecond: number
  /** throughput and CPU per unit against the group's baseline; undefined without one */
  readonly throughputRatio: number | undefined
  readonly cpuRatio: number | undefined
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

const perSecond = ({ elapsedMillis, work }: Part): number => (work / elapsedMillis) * 1000
const cpuMicros = ({ cpuMillis, work }: Part): number => (cpuMillis * 1000) / work

/** Measurements of a case on one side, in the order of their rounds. */
export const runsOf = ({ ran }: StoredRun, name: string, side = 0): ReadonlyArray<MeasuredRun> =>
  ran
    .filter((one) => one.case === name && one.side === side)
    .toSorted((a, b) => a.round - b.round)
    .map(({ measured }) => measured)

const summaryOf = (one: StoredCase, runs: ReadonlyArray<MeasuredRun>): CaseSummary => {
  const speeds = runs.map(perSecond)
  const latencies = runs.flatMap((run) => run.latency ?? [])
  const of = (values: ReadonlyArray<number>): number | undefined =>
    values.length === 0 ? undefined : median(values)
  const names = new Set(runs.flatMap((run) => Object.keys(run.figures ?? {})))
  return {
    case: one.name,
    group: one.group,
    rounds: runs.length,
    perSecond: median(speeds),
    cpuMicrosPerUnit: median(runs.map(cpuMicros)),
    p50Millis: of(latencies.map((latency) => latency.p50Millis)),
    p99Millis: of(latencies.map((latency) => latency.p99Millis)),
    figures: Object.fromEntries(
      Array.from(names, (name) => [name, median(runs.flatMap((run) => run.figures?.[name] ?? []))])
    ),
    slowestPerSecond: Math.min(...speeds),
    fastestPerSecond: Math.max(...speeds),
    throughputRatio: undefined,
    cpuRatio: undefined
  }
}

/** One line per case, in the suite's order, with ratios to the baseline of its group. */
export const summarize = (stored: StoredRun, side = 0): ReadonlyArray<CaseSummary> => {
  const { cases } = stored.begun
  const plain = cases.flatMap((one) => {
    const runs = runsOf(stored, one.name, side)
    return runs.length === 0 ? [] : [summaryOf(one, runs)]
  })
  const baselines = new Map(
    cases.flatMap(({ baseline, name }) => {
      const line = baseline ? plain.find((summary) => summary.case === name) : undefined
      return line === undefined ? [] : [[line.group, line] as const]
    })
  )
  return plain.map((line) => {
    const baseline = baselines.get(line.group)
    if (baseline === undefined || baseline.case === line.case) return line
    return {
      ...line,
      throughputRatio: line.perSecond / baseline.perSecond,
      cpuRatio: line.cpuMicrosPerUnit / baseline.cpuMicrosPerUnit
    }
  })
}

/** Groups whose cases did not produce the same result: their figures do not compare. */
export const disagreements = (stored: StoredRun): ReadonlyArray<string> => {
  const { cases, sides, suite } = stored.begun
  const results = new Map<string, Set<string>>()
  for (const { group, name } of cases) {
    for (const run of sides.flatMap((_, side) => runsOf(stored, name, side))) {
      if (run.result === undefined) continue
      results.set(group, (results.get(group) ?? new Set()).add(run.result))
    }
  }
  return Array.from(results).flatMap(([group, found]) =>
    found.size > 1 ? [`${suite} ${group}: results differ: ${Array.from(found).join(", ")}`] : []
  )
}

/** Use of the process under test: medians over the rounds; undefined where no round has them. */
export interface UseSummary {
  readonly case: string
  /** CPU µs a unit of work by group of threads */
  readonly threads: Readonly<Record<string, number>>
  /** time in collections as a share of the main thread's */
  readonly gcShare: number | undefined
  readonly allocatedBytesPerUnit: number | undefined
  readonly rssMiB: number
}

export const usesOf = (stored: StoredRun, side = 0): ReadonlyArray<UseSummary> =>
  stored.begun.cases.flatMap(({ name }) => {
    const runs = runsOf(stored, name, side).flatMap(({ use, work }) =>
      use === undefined ? [] : [{ use, work }]
    )
    if (runs.length === 0) return []
    const heaps = runs.flatMap(({ use, work }) =>
      use.heap === undefined ? [] : [{ heap: use.heap, main: use.threads["main"] ?? Number.NaN, work }]
    )
    const groups = new Set(runs.flatMap(({ use }) => Object.keys(use.threads)))
    return [
      {
        case: name,
        threads: Object.fromEntries(
          Array.from(groups, (group) => [
            group,
            median(runs.map(({ use, work }) => ((use.threads[group] ?? 0) * 1000) / work))
          ])
        ),
        gcShare: heaps.length === 0 ? undefined : median(heaps.map(({ heap, main }) => heap.gcMillis / main)),
        allocatedBytesPerUnit:
          heaps.length === 0 ? undefined : median(heaps.map(({ heap, work }) => heap.allocatedBytes / work)),
        rssMiB: median(runs.map(({ use }) => use.rssMiB))
      }
    ]
  })

/** Files of the latest CPU profile of each case, where profiles were asked for. */
export const profilesOf = ({ ran }: StoredRun): ReadonlyArray<string> =>
  Array.from(new Set(ran.flatMap(({ measured }) => measured.use?.profile ?? [])))

/** The difference of a case between two trees, or two runs. */
export interface CaseDifference {
  readonly case: string
  /** medians of CPU µs a unit */
  readonly cpuMicros: readonly [one: number, other: number]
  readonly cpu: Difference | undefined
  readonly throughput: Difference | undefined
  /** outside the noise, all cases and both figures tested together */
  readonly cpuDiffers: boolean
  readonly throughputDiffers: boolean
}

type Runs = readonly [ones: ReadonlyArray<MeasuredRun>, others: ReadonlyArray<MeasuredRun>]

type Figure = (measured: Part) => number

type Test = (runs: Runs, figure: Figure) => Difference | undefined

/**
 * One side's figure over the other's in a round. Where both were measured side by side, in parts: the mean of the middle half
 * of the parts' ratios, since a collection of all garbage falls into a few parts of one side.
 */
const ratioOf = (one: MeasuredRun, other: MeasuredRun, of: Figure): number => {
  const logs = (one.parts ?? []).flatMap((part, place) => {
    const beside = other.parts?.[place]
    const log = beside === undefined ? Number.NaN : Math.log(of(part) / of(beside))
    return Number.isFinite(log) ? [log] : []
  })
  if (logs.length < 2) return of(one) / of(other)
  const cut = Math.floor(logs.length / 4)
  const middle = logs.toSorted((a, b) => a - b).slice(cut, logs.length - cut)
  return Math.exp(middle.reduce((sum, log) => sum + log, 0) / middle.length)
}

const inPairs: Test = ([ones, others], of) =>
  paired(
    others.flatMap((other, round) => {
      const one = ones[round]
      return one === undefined ? [] : [ratioOf(one, other, of)]
    })
  )

const apart: Test = ([ones, others], of) => unpaired(ones.map(of), others.map(of))

/** CPU per unit is the steadier figure, and is trusted with most of the chance of a false claim. */
const cpuWeight = 4

const differences = (
  names: ReadonlyArray<string>,
  runs: (name: string) => Runs,
  test: Test,
  chance: number = falseClaimChance
): ReadonlyArray<CaseDifference> => {
  const found = names.flatMap((name) => {
    const both = runs(name)
    if (both[0].length === 0 || both[1].length === 0) return []
    const cpuMicrosOf = [median(both[0].map(cpuMicros)), median(both[1].map(cpuMicros))] as const
    return [
      { case: name, cpuMicros: cpuMicrosOf, cpu: test(both, cpuMicros), throughput: test(both, perSecond) }
    ]
  })
  const holds = claimed(
    found.flatMap(({ cpu, throughput }) => [
      { p: cpu?.p ?? 1, weight: cpuWeight },
      { p: throughput?.p ?? 1, weight: 1 }
    ]),
    chance
  )
  return found.map((one, index) => ({
    ...one,
    cpuDiffers: holds[2 * index] ?? false,
    throughputDiffers: holds[2 * index + 1] ?? false
  }))
}

/** By the first so many rounds. */
const differencesWithin = (stored: StoredRun, rounds: number): ReadonlyArray<CaseDifference> =>
  differences(
    stored.begun.cases.map(({ name }) => name),
    (name) => [runsOf(stored, name, 0).slice(0, rounds), runsOf(stored, name, 1).slice(0, rounds)],
    inPairs,
    stored.begun.looksTwice === true ? falseClaimChance / 2 : falseClaimChance
  )

/**
 * Of a run with `--against`: this tree's figures over the other's, by the paired test. Where the first look left it open,
 * a difference holds that was claimed at either look.
 */
export const differencesOf = (stored: StoredRun): ReadonlyArray<CaseDifference> => {
  const found = differencesWithin(stored, Number.POSITIVE_INFINITY)
  if (stored.leftOpen === undefined) return found
  const earlier = new Map(differencesWithin(stored, stored.leftOpen.rounds).map((line) => [line.case, line]))
  return found.map((line) => ({
    ...line,
    cpuDiffers: line.cpuDiffers || earlier.get(line.case)?.cpuDiffers === true,
    throughputDiffers: line.throughputDiffers || earlier.get(line.case)?.throughputDiffers === true
  }))
}

/** A difference with a p below it that is not claimed leaves a comparison open. */
const openBelow = 0.1

/** Whether a case may differ though no difference of it is claimed. */
export const isOpen = (stored: StoredRun): boolean =>
  differencesOf(stored).some(
    ({ cpu, cpuDiffers, throughput, throughputDiffers }) =>
      !cpuDiffers && !throughputDiffers && Math.min(cpu?.p ?? 1, throughput?.p ?? 1) < openBelow
  )

/** Of two stored runs: the second one's figures over the first one's, by the test for unpaired figures. */
export const differencesBetween = (first: StoredRun, second: StoredRun): ReadonlyArray<CaseDifference> =>
  differences(
    second.begun.cases.map(({ name }) => name),
    (name) => [runsOf(second, name), runsOf(first, name)],
    apart
  )
