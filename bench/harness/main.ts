import { randomUUID } from "node:crypto"
import { mkdirSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { alikeFlags } from "./AlikeFlags.ts"
import { type Asked, readArguments, usage } from "./Arguments.ts"
import { interruptedStatus, interruptSignal, wasInterrupted } from "./Interrupt.ts"
import { commitOf, loadNow, machine, type Watch, watchMachine } from "./Machine.ts"
import { heaviest } from "./Profile.ts"
import { Progress } from "./Progress.ts"
import { startReaper } from "./Reaper.ts"
import { comparison, listing, table } from "./Report.ts"
import { choose, type Rounds, runPlan } from "./Runner.ts"
import { append, type Begun, runName, storedRun, storedRuns } from "./Store.ts"
import type { BenchSuite } from "./Suite.ts"
import { openApart } from "./SuiteHost.ts"
import { loadSuite } from "./Suites.ts"
import { disagreements, isOpen, profilesOf } from "./Summary.ts"
import { copyHere, copyOther, type Tree } from "./Trees.ts"

/** The command line of the bench; `Arguments.ts` has what it takes. */

const say = (text: string): void => console.log(text)

/** A line that the next one replaces, on a terminal. */
const status = (text: string): void => {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[2K${text}`)
}

const signal = interruptSignal()

/**
 * A quick suite aims at 90 s, stages and set-up included, and makes one round at least; a quick comparison aims at two
 * minutes of rounds, and makes six at least; as many again where they leave it open.
 */
const quickMillis = 75_000
const quickComparisonMillis = 105_000

const roundsOf = (asked: Asked, suite: BenchSuite): Rounds => {
  if (asked.rounds !== undefined) return { count: asked.rounds }
  const isComparison = asked.against !== undefined
  if (asked.size === "full") return { count: isComparison ? 10 : (suite.rounds ?? 5) }
  return isComparison
    ? { withinMillis: quickComparisonMillis, least: 6, most: 12 }
    : { withinMillis: quickMillis, least: 1, most: 3 }
}

/** Unless it was told how many rounds to make, a comparison that its rounds leave open makes as many again. */
const looksTwice = ({ against, rounds }: Asked): boolean => against !== undefined && rounds === undefined

/** The two servers of a comparison share a core, and so have half of the window each. */
const windowMillisOf = ({ against, size, windowMillis }: Asked): number =>
  windowMillis ?? (size === "full" ? 4_000 : against === undefined ? 1_500 : 2_400)

/** The trees that are measured; the run's directory holds their copies. */
const treesOf = async (asked: Asked, directory: string): Promise<ReadonlyArray<Tree>> => {
  if (asked.against === undefined)
    return [
      {
        directory: resolve(import.meta.dirname, "../.."),
        label: commitOf(import.meta.dirname),
        ownBench: false
      }
    ]
  status("copying both trees")
  const names = asked.suites.map(({ name }) => name)
  return [
    await copyHere(join(directory, "here"), signal),
    await copyOther(asked.against, join(directory, "there"), names, signal)
  ]
}

/** All that the suites of a command have in common. */
interface Run {
  readonly asked: Asked
  readonly trees: ReadonlyArray<Tree>
  /** before anything was started */
  readonly load: number
}

/** Describes one suite's run before it starts. */
const begin = async (
  { asked, load, trees }: Run,
  suite: BenchSuite,
  patterns: ReadonlyArray<string>,
  warnings: ReadonlyArray<string>
) => {
  const { results, settings, size } = asked
  const { cases, unavailable } = await choose(suite, {
    patterns,
    size,
    signal,
    isComparison: trees.length > 1
  })
  const sides = trees.map(({ label }) => label)
  const at = new Date()
  const begun: Begun = {
    kind: "begun",
    run: runName(results, suite.name, at, sides[0] ?? ""),
    at: at.toISOString(),
    suite: suite.name,
    about: suite.about,
    unit: suite.unit,
    size,
    windowMillis: windowMillisOf(asked),
    settings,
    machine: machine(load),
    sides,
    cases: cases.map(({ baseline = false, group = "", name, sideBySide = false }) => ({
      name,
      group,
      baseline,
      // A tree that is measured by its own bench may not know of the barrier.
      sideBySide: sideBySide && !trees.some(({ ownBench }) => ownBench)
    })),
    ...(looksTwice(asked) ? { looksTwice: true } : {}),
    unavailable,
    warnings
  }
  return begun
}

/** Directories of the sides of a comparison, that their stages keep from round to round. */
const keptOf = (suite: BenchSuite, trees: ReadonlyArray<Tree>): ReadonlyArray<string> => {
  const kept =
    trees.length > 1 ? trees.map(({ directory }) => join(directory, ".bench-kept", suite.name)) : []
  for (const directory of kept) mkdirSync(directory, { recursive: true })
  return kept
}

/** The rounds of a suite; each measurement is stored and shown as it ends. */
const measure = async (
  { asked, trees }: Run,
  suite: BenchSuite,
  begun: Begun,
  watch: Watch
): Promise<void> => {
  const { results } = asked
  const { run, settings, sides, size, windowMillis } = begun
  const cases = begun.cases.map(({ name }) => name)
  const earlier = storedRuns(results).filter(
    (one) => one.begun.suite === suite.name && one.begun.sides.length === sides.length
  )
  const rounds = roundsOf(asked, suite)
  const kept = keptOf(suite, trees)
  const prepared = await suite.prepare?.({ size, settings, kept, say, signal })
  const progress = new Progress({ cases, sides: sides.length, rounds, size, earlier })
  const sideOf = (side: number): string | undefined =>
    sides.length === 1 ? undefined : side === 0 ? "here" : sides[side]
  const profiles = asked.profiles ? join(results, "profiles", run) : undefined
  status(`${suite.name}: setting up`)
  await runPlan({
    suite: suite.name,
    cases: begun.cases,
    sides: sides.length,
    rounds,
    signal,
    open: (side) =>
      openApart(trees[side]?.directory ?? "", suite.name, {
        size,
        windowMillis,
        settings: prepared?.[side] ?? settings,
        cases,
        ...(kept[side] === undefined ? {} : { kept: kept[side] }),
        ...(profiles === undefined ? {} : { profiles })
      }),
    onRound: watch.look,
    isOpen: (done) => {
      if (begun.looksTwice !== true || !isOpen(storedRun(results, run))) return false
      append(results, run, { kind: "left open", rounds: done })
      progress.goesOnTo(2 * done)
      status("")
      say(`${suite.name}: ${done} rounds leave it open; as many again`)
      return true
    },
    onStart: (one, round, side) => status(`${suite.name}: ${progress.line(one, round, sideOf(side))}`),
    onRan: (ran) => {
      append(results, run, ran)
      progress.ran(ran)
      const { cpuMillis, elapsedMillis, work } = ran.measured
      const speed = Math.round((work / elapsedMillis) * 1000).toLocaleString("en-US")
      const cpu = ((cpuMillis * 1000) / work).toPrecision(3)
      status("")
      say(
        `${progress.line(ran.case, ran.round, sideOf(ran.side))}: ${speed} ${suite.unit}/s, ${cpu} µs CPU each`
      )
    }
  })
}

/** Runs a suite to its end, or to an interrupt or a fault, and prints the table of what was measured. */
const runSuite = async (run: Run, { name, patterns }: Asked["suites"][number]): Promise<void> => {
  const { asked, trees } = run
  const { results } = asked
  const suite = await loadSuite(name)
  const watch = await watchMachine(1_000)
  const begun = await begin(run, suite, patterns, watch.before)
  const file = append(results, begun.run, begun)
  let early: string | undefined
  try {
    await measure(run, suite, begun, watch)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    early = (await wasInterrupted(signal)) ? "interrupted" : error.message
    if (early !== "interrupted") process.exitCode = 1
  }
  const warnings = [
    ...watch.since(),
    ...trees.flatMap(({ label, ownBench }) => (ownBench ? [`${label} was measured by its own bench`] : []))
  ]
  const at = new Date().toISOString()
  append(results, begun.run, { kind: "ended", at, warnings, ...(early === undefined ? {} : { early }) })
  const stored = storedRun(results, begun.run)
  status("")
  say(`\n${table(stored)}\n${file}\n`)
  for (const profile of profilesOf(stored)) say(`${profile}\n${heaviest(profile).join("\n")}\n`)
  if (disagreements(stored).length > 0) process.exitCode = 1
}

const run = async (asked: Asked): Promise<void> => {
  const load = loadNow()
  // Long enough to be in no other process's environment, and resolved: /tmp may be a link.
  const directory = join(realpathSync(tmpdir()), `signalbox-bench-run-${randomUUID()}`)
  const reaper = startReaper(directory)
  try {
    // Once the reaper is there: a run that is killed before it leaves nothing.
    mkdirSync(join(directory, "tmp"), { recursive: true, mode: 0o700 })
    process.env["TMPDIR"] = join(directory, "tmp")
    process.env["BENCH_PROBE"] = join(directory, "probes")
    const trees = await treesOf(asked, directory)
    if (trees.length > 1) process.env["BENCH_SERVER_FLAGS"] = alikeFlags.join(" ")
    for (const suite of asked.suites) {
      if (!signal.aborted) await runSuite({ asked, trees, load }, suite)
    }
  } finally {
    await reaper.reap()
  }
}

const main = async (): Promise<void> => {
  const asked = readArguments(process.argv.slice(2))
  if (asked.do === "usage") say(usage())
  else if (asked.do === "list") say(listing(storedRuns(asked.results)))
  else if (asked.do === "show") say(table(storedRun(asked.results, asked.run)))
  else if (asked.do === "compare")
    say(comparison(storedRun(asked.results, asked.first), storedRun(asked.results, asked.second)))
  else await run(asked.asked)
}

try {
  await main()
} catch (error) {
  if (!(error instanceof Error)) throw error
  console.error((await wasInterrupted(signal)) ? "interrupted" : error.message)
  process.exitCode = process.exitCode ?? 1
}
// Where the reaper cannot look for processes, those that are left still hold the loop; they end with their connection.
if (signal.aborted) process.exit(interruptedStatus)
