import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Machine } from "./Machine.ts"
import type { Measurement, Settings, Size } from "./Suite.ts"

/**
 * Results: a file of JSON lines for each run, `<results>/<run>.ndjson`. The first line says what is run, each further
 * one is a measurement, written as it ends, or tells of the first look of a comparison; the last one says how the run
 * ended. A run that was killed lacks it.
 */
export interface Begun {
  readonly kind: "begun"
  readonly run: string
  /** ISO 8601 */
  readonly at: string
  readonly suite: string
  readonly about: string
  readonly unit: string
  readonly size: Size
  readonly windowMillis: number
  readonly settings: Settings
  readonly machine: Machine
  /** commits that are measured: one, or two with `--against` */
  readonly sides: ReadonlyArray<string>
  readonly cases: ReadonlyArray<StoredCase>
  /** a comparison that its first rounds leave open gets as many again; each of the two looks has half the chance of a false claim */
  readonly looksTwice?: boolean
  readonly unavailable: ReadonlyArray<{ readonly case: string; readonly reason: string }>
  /** doubts that there were before the first round; runs from before 2026-12 have them at their end */
  readonly warnings?: ReadonlyArray<string>
}

export interface StoredCase {
  readonly name: string
  readonly group: string
  readonly baseline: boolean
  readonly sideBySide: boolean
}

/** A measurement with what the harness adds to it. */
export interface MeasuredRun extends Measurement {
  readonly cpuMillis: number
  /** of the case process */
  readonly maxRssMiB: number
}

export interface Ran {
  readonly kind: "ran"
  readonly case: string
  readonly round: number
  /** index in `sides` */
  readonly side: number
  /** start, warm-up and measurement */
  readonly tookMillis: number
  /** share of all cores' time that the machine's host took meanwhile; runs from before 2026-12 lack it */
  readonly stolen?: number
  readonly measured: MeasuredRun
}

/** So many rounds left a comparison open: it gets as many again. */
export interface LeftOpen {
  readonly kind: "left open"
  readonly rounds: number
}

export interface Ended {
  readonly kind: "ended"
  readonly at: string
  /** "interrupted", or the message of the fault that ended it */
  readonly early?: string
  readonly warnings: ReadonlyArray<string>
}

type Line = Begun | Ran | LeftOpen | Ended

export interface StoredRun {
  readonly begun: Begun
  readonly ran: ReadonlyArray<Ran>
  readonly leftOpen: LeftOpen | undefined
  /** undefined where the run was killed, or still runs */
  readonly ended: Ended | undefined
}

/** Out of git's sight; `--results` names another directory. */
export const usualResults = join(import.meta.dirname, "..", "results")

/** `llm-20261122-104500-f353191`, unique in the directory. */
export const runName = (directory: string, suite: string, at: Date, commit: string): string => {
  const [day = "", time = ""] = at
    .toISOString()
    .replaceAll(/[-:]|\..*/g, "")
    .split("T")
  const name = `${suite}-${day}-${time}-${commit.replaceAll(/[^\w+]/g, "")}`
  let unique = name
  for (let count = 2; existsSync(join(directory, `${unique}.ndjson`)); count++) unique = `${name}-${count}`
  return unique
}

/** Appends one line; whole, or torn at the end of the file where the machine itself stops. */
export const append = (directory: string, run: string, line: Line): string => {
  mkdirSync(directory, { recursive: true })
  const file = join(directory, `${run}.ndjson`)
  appendFileSync(file, `${JSON.stringify(line)}\n`)
  return file
}

const parsed = (line: string): ReadonlyArray<Line> => {
  if (line === "") return []
  try {
    return [JSON.parse(line) as Line]
  } catch (error) {
    // Torn: the lines before it are whole.
    if (error instanceof SyntaxError) return []
    throw error
  }
}

const readFile = (file: string): StoredRun | undefined => {
  const lines = readFileSync(file, "utf8").split("\n").flatMap(parsed)
  const begun = lines.find((line) => line.kind === "begun")
  if (begun === undefined) return undefined
  return {
    begun,
    ran: lines.filter((line) => line.kind === "ran"),
    leftOpen: lines.find((line) => line.kind === "left open"),
    ended: lines.find((line) => line.kind === "ended")
  }
}

/** All stored runs, oldest first. */
export const storedRuns = (directory: string): ReadonlyArray<StoredRun> =>
  (existsSync(directory) ? readdirSync(directory) : [])
    .filter((name) => name.endsWith(".ndjson"))
    .flatMap((name) => readFile(join(directory, name)) ?? [])
    .toSorted((a, b) => (a.begun.at < b.begun.at ? -1 : 1))

/** All doubts about a run's figures. */
export const warningsOf = ({ begun, ended }: StoredRun): ReadonlyArray<string> => [
  ...(begun.warnings ?? []),
  ...(ended?.warnings ?? [])
]

/** One stored run, by its name, the beginning of it if that is unique, or a file. */
export const storedRun = (directory: string, name: string): StoredRun => {
  if (statSync(name, { throwIfNoEntry: false })?.isFile() === true) {
    const run = readFile(name)
    if (run === undefined) throw new Error(`${name} holds no run of the bench`)
    return run
  }
  const found = storedRuns(directory).filter(({ begun }) => begun.run.startsWith(name))
  const exact = found.find(({ begun }) => begun.run === name)
  const [only, ...others] = exact === undefined ? found : [exact]
  if (only === undefined)
    throw new Error(`there is no stored run "${name}"; \`bench list\` shows those that there are`)
  if (others.length > 0)
    throw new Error(
      `"${name}" begins the names of ${found.length} runs: ${found.map((one) => one.begun.run).join(", ")}`
    )
  return only
}
