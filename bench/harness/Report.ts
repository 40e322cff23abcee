import { falseClaimChance } from "./Paired.ts"
import { type StoredRun, warningsOf } from "./Store.ts"
import {
  type CaseDifference,
  differencesBetween,
  differencesOf,
  disagreements,
  summarize,
  usesOf
} from "./Summary.ts"

const figure = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3)

const cell = (value: number | undefined, unit = ""): string =>
  value === undefined || Number.isNaN(value) ? "" : figure(value) + unit

/** Columns as wide as their widest cell; the first one is flush left, the others are flush right. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const pad = (value: string, column: number): string =>
    column === 0 ? value.padEnd(widths[0] ?? 0) : value.padStart(widths[column] ?? 0)
  return rows.map((row) => row.map(pad).join("  ").trimEnd())
}

const ofCases = (stored: StoredRun): ReadonlyArray<string> => {
  const lines = summarize(stored)
  const names = Array.from(new Set(lines.flatMap((line) => Object.keys(line.figures))))
  const head = [
    "case",
    `${stored.begun.unit}/s`,
    "range",
    "vs base",
    "CPU µs/unit",
    "CPU vs base",
    "p50 ms",
    "p99 ms"
  ]
  const rows = lines.map((line) => [
    line.group === "" ? line.case : `${line.group}: ${line.case}`,
    figure(line.perSecond),
    `${figure(line.slowestPerSecond)}–${figure(line.fastestPerSecond)}`,
    cell(line.throughputRatio, "x"),
    cell(line.cpuMicrosPerUnit),
    cell(line.cpuRatio, "x"),
    cell(line.p50Millis),
    cell(line.p99Millis),
    ...names.map((name) => cell(line.figures[name]))
  ])
  return aligned([[...head, ...names], ...rows])
}

const ofUse = (stored: StoredRun): ReadonlyArray<string> => {
  const uses = usesOf(stored)
  if (uses.length === 0) return []
  const groups = Array.from(new Set(uses.flatMap(({ threads }) => Object.keys(threads))))
  const head = [
    "process under test",
    ...groups.map((name) => `${name} µs/unit`),
    "GC %",
    "KB/unit",
    "RSS MiB"
  ]
  const rows = uses.map(({ allocatedBytesPerUnit, case: name, gcShare, rssMiB, threads }) => [
    name,
    ...groups.map((group) => cell(threads[group])),
    cell(gcShare === undefined ? undefined : gcShare * 100),
    cell(allocatedBytesPerUnit === undefined ? undefined : allocatedBytesPerUnit / 1024),
    cell(rssMiB)
  ])
  return ["", ...aligned([head, ...rows])]
}

const percent = (ratio: number): string => {
  const change = (ratio - 1) * 100
  return `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)} %`
}

/** One sentence for a case: CPU before throughput, because CPU is the steadier figure. */
const verdict = ({ cpu, cpuDiffers, throughput, throughputDiffers }: CaseDifference): string => {
  if (cpu === undefined && throughput === undefined) return "too few rounds to tell"
  if (cpuDiffers && cpu !== undefined) return `CPU ${percent(cpu.ratio)}: outside the noise`
  if (throughputDiffers && throughput !== undefined)
    return `throughput ${percent(throughput.ratio)}: outside the noise`
  return "within the noise"
}

const ofDifferences = (
  found: ReadonlyArray<CaseDifference>,
  [one, other]: readonly [string, string],
  test: string,
  looksTwice = false
): ReadonlyArray<string> => {
  const head = [
    "case",
    `CPU µs ${one}`,
    other,
    "ratio",
    "rounds' range",
    "p",
    "throughput",
    "p",
    "rounds",
    ""
  ]
  const p = (value: number | undefined): string =>
    value === undefined ? "" : value < 0.0001 ? "<0.0001" : value.toFixed(4)
  const range = (least: number, most: number): string => `${least.toFixed(3)}–${most.toFixed(3)}`
  const rows = found.map((line) => [
    line.case,
    cell(line.cpuMicros[0]),
    cell(line.cpuMicros[1]),
    line.cpu?.ratio.toFixed(3) ?? "",
    line.cpu === undefined ? "" : range(line.cpu.least, line.cpu.most),
    p(line.cpu?.p),
    line.throughput?.ratio.toFixed(3) ?? "",
    p(line.throughput?.p),
    String(line.cpu?.rounds ?? line.throughput?.rounds ?? 0),
    verdict(line)
  ])
  return [
    ...aligned([head, ...rows]),
    `${test} on the logarithm of CPU per unit and of throughput; differences up to 1 % count as none; all together, ` +
      `a difference is claimed by chance in ${falseClaimChance * 100} % of runs (Holm${looksTwice ? "; half of it at a first look, half after as many rounds again" : ""})`
  ]
}

/** Why a run ended early, in a few words: a fault may come with all that a server said. */
const earlyOf = (early: string): string => {
  const [line = ""] = early.split("\n")
  return line.length > 100 ? `${line.slice(0, 100)}…` : line
}

/** The measurements that a run which ended early lacks. */
const missing = ({ begun, ended, ran }: StoredRun): ReadonlyArray<string> => {
  if (ended !== undefined && ended.early === undefined) return []
  const lacking = begun.cases.filter(({ name }) => !ran.some((one) => one.case === name))
  const rounds = Math.max(0, ...ran.map((one) => one.round + 1))
  const cut = begun.cases.filter(({ name }) => {
    const own = ran.filter((one) => one.case === name).length
    return own > 0 && own < rounds * begun.sides.length
  })
  const list = (cases: typeof lacking): string => cases.map(({ name }) => name).join("; ")
  return [
    `This run ended early: ${earlyOf(ended?.early ?? "it was killed, or still runs")}. The table shows the ${ran.length} measurements that it finished.`,
    ...(lacking.length === 0 ? [] : [`Not measured: ${list(lacking)}`]),
    ...(cut.length === 0 ? [] : [`Not measured in round ${rounds}: ${list(cut)}`])
  ]
}

/** Cases that were not warm when they were measured. */
const unsteady = ({ begun, ran }: StoredRun): ReadonlyArray<string> =>
  begun.cases.flatMap(({ name }) => {
    const rounds = ran.filter((one) => one.case === name && one.measured.details?.["steady"] === 0).length
    return rounds === 0
      ? []
      : [`Warning: ${name} was still changing when it was measured, in ${rounds} of its runs`]
  })

const stolenShareMax = 0.05

/** The measurement from which the machine's host took the most. Latencies of it say more about the host. */
const robbed = ({ ran }: StoredRun): ReadonlyArray<string> => {
  const [worst] = ran.toSorted((a, b) => (b.stolen ?? 0) - (a.stolen ?? 0))
  if (worst?.stolen === undefined || worst.stolen <= stolenShareMax) return []
  const many = ran.filter(({ stolen = 0 }) => stolen > stolenShareMax).length
  return [
    `Warning: the machine's host took ${(worst.stolen * 100).toFixed(0)} % of all cores while ${worst.case} was measured in ` +
      `round ${worst.round + 1}, and over ${stolenShareMax * 100} % in ${many} of ${ran.length} measurements`
  ]
}

const heading = ({ begun }: StoredRun): string => {
  const { about, at, machine, settings, sides, size, suite } = begun
  const chosen = Object.entries(settings).map(([name, value]) => `; ${name} ${value}`)
  const { node, ...others } = machine.versions
  const versions = Object.entries(others).map(([name, version]) => `${name} ${version}`)
  return [
    `${suite}: ${about}`,
    `${size} run of ${sides.join(" against ")}, ${at}, window ${begun.windowMillis / 1000} s${chosen.join("")}; load before it ${machine.load.toFixed(2)}`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryMiB} MiB, ${machine.system}, Node ${node}, ${versions.join(", ")}`,
    ""
  ].join("\n")
}

/** The table for the terminal, of a run that has ended or was cut short. */
export const table = (stored: StoredRun): string => {
  const { begun, ran } = stored
  const [one = "", other] = begun.sides
  const body =
    ran.length === 0
      ? ["Nothing was measured."]
      : other === undefined
        ? [...ofCases(stored), ...ofUse(stored)]
        : ofDifferences(
            differencesOf(stored),
            ["here", other],
            "Paired Student's t-test, round by round,",
            begun.looksTwice
          )
  return [
    heading(stored),
    ...body,
    ...begun.unavailable.map((unavailable) => `${unavailable.case}: not run: ${unavailable.reason}`),
    ...disagreements(stored),
    ...missing(stored),
    ...unsteady(stored),
    ...robbed(stored),
    ...warningsOf(stored).map((warning) => `Warning: ${warning}`),
    ...(other === undefined ? [] : [`"here" is ${one}; ratios are here / ${other}`])
  ].join("\n")
}

/** Two stored runs beside each other. */
export const comparison = (first: StoredRun, second: StoredRun): string => {
  const [a, b] = [first.begun, second.begun]
  const versions = Object.keys({ ...a.machine.versions, ...b.machine.versions }).filter(
    (name) => a.machine.versions[name] !== b.machine.versions[name]
  )
  const doubts = [
    ...(a.suite === b.suite ? [] : [`they are of different suites: ${a.suite} and ${b.suite}`]),
    ...(a.size === b.size ? [] : [`one is a ${a.size} run, the other a ${b.size} run`]),
    ...(a.machine.cpu === b.machine.cpu && a.machine.cores === b.machine.cores
      ? []
      : ["they are of different machines"]),
    ...(a.windowMillis === b.windowMillis ? [] : ["their windows are not as long as each other"]),
    ...(JSON.stringify(a.settings) === JSON.stringify(b.settings) ? [] : ["their settings differ"]),
    ...(versions.length === 0 ? [] : [`they ran with other versions of ${versions.join(", ")}`]),
    ...[first, second].flatMap((stored) => [
      ...(stored.ended?.early === undefined ? [] : [`${stored.begun.run} ended early`]),
      ...warningsOf(stored).map((warning) => `${stored.begun.run}: ${warning}`)
    ])
  ]
  const found = differencesBetween(first, second)
  return [
    `${b.run} over ${a.run}`,
    "",
    ...(found.length === 0
      ? ["They have no case in common."]
      : ofDifferences(
          found,
          [b.sides[0] ?? "", a.sides[0] ?? ""],
          "Welch's t-test, as the runs were not made together,"
        )),
    ...doubts.map((doubt) => `Warning: ${doubt}`)
  ].join("\n")
}

/** A line for each stored run. */
export const listing = (runs: ReadonlyArray<StoredRun>): string =>
  runs.length === 0
    ? "No run is stored yet."
    : aligned([
        ["run", "at", "size", "cases", "measured", "ended"],
        ...runs.map(({ begun, ended, ran }) => [
          begun.run + (begun.sides.length > 1 ? ` against ${begun.sides[1]}` : ""),
          begun.at.slice(0, 19),
          begun.size,
          String(begun.cases.length),
          String(ran.length),
          ended === undefined ? "killed or running" : earlyOf(ended.early ?? "whole")
        ])
      ]).join("\n")
