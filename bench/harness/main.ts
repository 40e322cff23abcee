import { mkdirSync, mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { type Asked, readArguments, usage } from "./Arguments.ts"
import { commitOf, machine, watchMachine } from "./Machine.ts"
import { heaviest } from "./Profile.ts"
import { Progress } from "./Progress.ts"
import { startReaper } from "./Reaper.ts"
import { comparison, listing, table } from "./Report.ts"
import { choose, Interrupted, type Rounds, runPlan } from "./Runner.ts"
import { append, type Begun, resultsDirectory, runName, storedRun, storedRuns } from "./Store.ts"
import type { BenchSuite } from "./Suite.ts"
import { openApart } from "./SuiteHost.ts"
import { loadSuite } from "./Suites.ts"
import { disagreements } from "./Summary.ts"
import { copyHere, copyOther, type Tree } from "./Trees.ts"

/** The command line of the bench; `Arguments.ts` has what it takes. */

const say = (text: string): void => console.log(text)

/** A line that the next one replaces, where somebody watches. */
const status = (text: string): void => {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[2K${text}`)
}

const interrupt = new AbortController()
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => interrupt.abort())

/** A run whose starter was killed ends as if interrupted, and does not go on unseen. */
const starter = process.ppid
setInterval(() => process.ppid !== starter && interrupt.abort(), 500).unref()

/** A quick suite takes at most 90 s, stages and set-up included; a quick comparison two minutes. */
const quickMillis = 75_000
const quickComparisonMillis = 105_000

const roundsOf = (asked: Asked, suite: BenchSuite): Rounds => {
  if (asked.rounds !== undefined) return { count: asked.rounds }
  const isComparison = asked.against !== undefined
  if (asked.size === "full") return { count: isComparison ? 10 : (suite.rounds ?? 5) }
  return isComparison
    ? { withinMillis: quickComparisonMillis, least: 5, most: 12 }
    : { withinMillis: quickMillis, least: 1, most: 3 }
}

const defaultWindowMillis = { tiny: 200, quick: 1_500, full: 4_000 } as const

/** What is measured, here and there; the run's directory holds the copies. */
const treesOf = (asked: Asked, directory: string): ReadonlyArray<Tree> => {
  if (asked.against === undefined)
    return [{ directory: resolve(import.meta.dirname, "../.."), label: commitOf(import.meta.dirname), ownBench: false }]
  status("copying both trees")
  const names = asked.suites.map(({ name }) => name)
  return [copyHere(join(directory, "here")), copyOther(asked.against, join(directory, "there"), names)]
}

const runSuite = async (
  asked: Asked,
  { name, patterns }: Asked["suites"][number],
  trees: ReadonlyArray<Tree>
): Promise<void> => {
  const suite = await loadSuite(name)
  const { settings, size } = asked
  const windowMillis = asked.windowMillis ?? defaultWindowMillis[size]
  const { cases, unavailable } = await choose(suite, { patterns, size, isComparison: trees.length > 1 })
  const names = cases.map((one) => one.name)
  const sides = trees.map(({ label }) => label)
  const at = new Date()
  const run = runName(name, at, sides[0] ?? "")
  const watch = await watchMachine(1_000)
  const begun: Begun = {
    kind: "begun",
    run,
    at: at.toISOString(),
    suite: name,
    about: suite.about,
    unit: suite.unit,
    size,
    windowMillis,
    settings,
    machine: machine(),
    sides,
    cases: cases.map(({ baseline = false, group = "", name: one }) => ({ name: one, group, baseline })),
    unavailable
  }
  const earlier = storedRuns().filter((one) => one.begun.suite === name && one.begun.sides.length === sides.length)
  const file = append(run, begun)
  const rounds = roundsOf(asked, suite)
  const progress = new Progress({ cases: names, sides: sides.length, rounds, size, earlier })
  const profiles = asked.profiles ? join(resultsDirectory, "profiles", run) : undefined
  let early: string | undefined
  try {
    const copies = trees.length > 1 ? trees.map(({ directory }) => join(directory, ".bench-data")) : []
    for (const copy of copies) mkdirSync(copy, { recursive: true })
    const prepared = (await suite.prepare?.({ size, settings, copies, say })) ?? []
    status(`${name}: setting up`)
    await runPlan({
      suite: name,
      cases: names,
      sides: sides.length,
      rounds,
      signal: interrupt.signal,
      open: (side) =>
        openApart(trees[side]?.directory ?? "", name, {
          size,
          windowMillis,
          settings: prepared[side] ?? settings,
          cases: names,
          ...(profiles === undefined ? {} : { profiles })
        }),
      onRound: watch.look,
      onStart: (one, round, side) =>
        status(`${name}: ${progress.line(one, round, sides.length > 1 ? (side === 0 ? "here" : sides[1]) : undefined)}`),
      onRan: (ran) => {
        append(run, ran)
        progress.ran(ran)
        const { cpuMillis, elapsedMillis, work } = ran.measured
        const speed = Math.round((work / elapsedMillis) * 1000).toLocaleString("en-US")
        const cpu = ((cpuMillis * 1000) / work).toPrecision(3)
        status("")
        say(
          `${progress.line(ran.case, ran.round, sides.length > 1 ? (ran.side === 0 ? "here" : sides[1]) : undefined)}: ` +
            `${speed} ${suite.unit}/s, ${cpu} µs CPU each`
        )
      }
    })
  } catch (error) {
    if (!(error instanceof Error)) throw error
    early = interrupt.signal.aborted ? "interrupted" : error.message
    if (!(error instanceof Interrupted) && early !== "interrupted") process.exitCode = 1
  }
  const warnings = [
    ...watch.warnings(),
    ...trees.flatMap(({ label, ownBench }) => (ownBench ? [`${label} was measured by its own bench`] : []))
  ]
  append(run, { kind: "ended", at: new Date().toISOString(), warnings, ...(early === undefined ? {} : { early }) })
  const stored = storedRun(run)
  status("")
  say(`\n${table(stored)}\n${file}`)
  for (const { measured } of stored.ran.slice(-names.length * sides.length)) {
    const profile = measured.use?.profile
    if (profile !== undefined) say(`\n${profile}\n${heaviest(profile).join("\n")}`)
  }
  say("")
  if (disagreements(stored).length > 0) process.exitCode = 1
}

const run = async (asked: Asked): Promise<void> => {
  // Long enough to be in no other process's environment, and resolved: /tmp may be a link.
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "signalbox-bench-run-")))
  const reaper = startReaper(directory)
  try {
    mkdirSync(join(directory, "tmp"))
    process.env["TMPDIR"] = join(directory, "tmp")
    process.env["BENCH_PROBE"] = join(directory, "probes")
    const trees = treesOf(asked, directory)
    for (const suite of asked.suites) {
      if (!interrupt.signal.aborted) await runSuite(asked, suite, trees)
    }
  } finally {
    await reaper.reap()
  }
  if (interrupt.signal.aborted) process.exitCode = 130
}

const main = async (): Promise<void> => {
  const asked = readArguments(process.argv.slice(2))
  if (asked.do === "usage") say(usage())
  else if (asked.do === "list") say(listing(storedRuns()))
  else if (asked.do === "show") say(table(storedRun(asked.run)))
  else if (asked.do === "compare") say(comparison(storedRun(asked.first), storedRun(asked.second)))
  else await run(asked.asked)
}

try {
  await main()
} catch (error) {
  if (!(error instanceof Error)) throw error
  console.error(error.message)
  process.exitCode = process.exitCode ?? 1
}
