import { appendFileSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import type { MeasuredRun } from "./CaseProcess.ts"
import type { Machine } from "./Machine.ts"
import type { SuiteRun } from "./Runner.ts"
import type { BenchCase } from "./Suite.ts"

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

const perSecond = (run: MeasuredRun): number => (run.work / run.elapsedMillis) * 1000
const cpuMicros = (run: MeasuredRun): number => (run.cpuMillis * 1000) / run.work

const summaryOf = (benchCase: BenchCase, runs: ReadonlyArray<MeasuredRun>): CaseSummary => {
  const speeds = runs.map(perSecond)
  const latencies = runs.flatMap((run) => (run.latency === undefined ? [] : [run.latency]))
  const of = (values: ReadonlyArray<number>): number | undefined =>
    values.length === 0 ? undefined : median(values)
  const names = new Set(runs.flatMap((run) => Object.keys(run.figures ?? {})))
  return {
    case: benchCase.name,
    group: benchCase.group ?? "",
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
export const summarize = ({ suite, runs }: SuiteRun): ReadonlyArray<CaseSummary> => {
  const plain = suite.cases.flatMap((benchCase) => {
    const own = runs.filter((run) => run.case === benchCase.name).map(({ run }) => run)
    return own.length === 0 ? [] : [summaryOf(benchCase, own)]
  })
  const baselines = new Map(
    suite.cases.flatMap((one) => {
      const summary = one.baseline === true ? plain.find((line) => line.case === one.name) : undefined
      return summary === undefined ? [] : [[summary.group, summary] as const]
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
export const disagreements = ({ suite, runs }: SuiteRun): ReadonlyArray<string> => {
  const results = new Map<string, Set<string>>()
  for (const benchCase of suite.cases) {
    for (const { case: name, run } of runs) {
      if (name !== benchCase.name || run.result === undefined) continue
      const group = benchCase.group ?? ""
      results.set(group, (results.get(group) ?? new Set()).add(run.result))
    }
  }
  return Array.from(results).flatMap(([group, found]) =>
    found.size > 1 ? [`${suite.name} ${group}: results differ: ${Array.from(found).join(", ")}`] : []
  )
}

const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3)

/** The table for the terminal. */
export const table = (suiteRun: SuiteRun): string => {
  const { suite, unavailable } = suiteRun
  const lines = summarize(suiteRun)
  const figureNames = Array.from(new Set(lines.flatMap((line) => Object.keys(line.figures))))
  const head = [
    "case",
    `${suite.unit}/s`,
    "range",
    "vs base",
    "CPU µs/unit",
    "CPU vs base",
    "p50 ms",
    "p99 ms"
  ]
  const cell = (value: number | undefined, unit = ""): string =>
    value === undefined ? "" : round(value) + unit
  const rows = lines.map((line) => [
    line.group === "" ? line.case : `${line.group}: ${line.case}`,
    round(line.perSecond),
    `${round(line.slowestPerSecond)}–${round(line.fastestPerSecond)}`,
    cell(line.throughputRatio, "x"),
    round(line.cpuMicrosPerUnit),
    cell(line.cpuRatio, "x"),
    cell(line.p50Millis),
    cell(line.p99Millis),
    ...figureNames.map((name) => cell(line.figures[name]))
  ])
  const all = [[...head, ...figureNames], ...rows]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  const text = all.map((row) =>
    row
      .map((value, column) =>
        column === 0 ? value.padEnd(widths[0] ?? 0) : value.padStart(widths[column] ?? 0)
      )
      .join("  ")
  )
  return [
    `${suite.name}: ${suite.about}`,
    ...text,
    ...unavailable.map((one) => `${one.case}: not run: ${one.reason}`),
    ...disagreements(suiteRun)
  ].join("\n")
}

/** Appends every single run, one JSON object a line, to bench/results/<suite>.ndjson. */
export const save = (suiteRun: SuiteRun, machine: Machine, at: string): string => {
  const directory = join(import.meta.dirname, "..", "results")
  mkdirSync(directory, { recursive: true })
  const file = join(directory, `${suiteRun.suite.name}.ndjson`)
  const lines = suiteRun.runs.map((run) =>
    JSON.stringify({
      at,
      suite: suiteRun.suite.name,
      unit: suiteRun.suite.unit,
      quick: suiteRun.quick,
      ...run,
      machine
    })
  )
  appendFileSync(file, `${lines.join("\n")}\n`)
  return file
}
