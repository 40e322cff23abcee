import { resolve } from "node:path"
import { parseArgs } from "node:util"
import type { Settings, Size } from "./Suite.ts"
import { usualResults } from "./Store.ts"
import { suiteNames } from "./Suites.ts"

/** A run that was asked for. */
export interface Asked {
  readonly suites: ReadonlyArray<{ readonly name: string; readonly patterns: ReadonlyArray<string> }>
  readonly size: Size
  readonly rounds: number | undefined
  readonly windowMillis: number | undefined
  /** a directory or a commit */
  readonly against: string | undefined
  readonly profiles: boolean
  /** the directory of stored runs */
  readonly results: string
  readonly settings: Settings
}

export type Command =
  | { readonly do: "usage" }
  | { readonly do: "list"; readonly results: string }
  | { readonly do: "show"; readonly results: string; readonly run: string }
  | { readonly do: "compare"; readonly results: string; readonly first: string; readonly second: string }
  | { readonly do: "run"; readonly asked: Asked }

export const usage = (): string =>
  `npm run bench -- SUITE [CASE…] [options]     measure; CASE is a name or a part of names, * stands for any text
npm run bench -- list                        runs that are stored
npm run bench -- show RUN                    the table of one
npm run bench -- compare A B                 B over A

Suites: ${suiteNames().join(", ")}; or all

--quick            a minute and a half a suite (with --against about three minutes, six where three leave it open)
--rounds N         so many rounds of all cases
--seconds N        length of the measured window of a case
--against X        compare with a commit or a directory, round by round
--profile          write CPU profiles of the process under test, and print its heaviest functions
--results DIR      where runs are stored, instead of bench/results
--events N, --days N     size of the data of the suite stats
--data DIR         where they are kept, instead of .runtime/bench`

const positive = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0)
    throw new Error(`--${name}: expected a number above 0, not "${text}"`)
  return value
}

const whole = (name: string, text: string | undefined): number | undefined => {
  const value = positive(name, text)
  if (value !== undefined && !Number.isInteger(value))
    throw new Error(`--${name}: expected a whole number, not "${text}"`)
  return value
}

/** Suites, each with the patterns that follow it. */
const suitesOf = (words: ReadonlyArray<string>): Asked["suites"] => {
  const known = suiteNames()
  const found: Array<{ name: string; patterns: Array<string> }> = []
  for (const word of words) {
    const last = found.at(-1)
    if (known.includes(word)) found.push({ name: word, patterns: [] })
    else if (word === "all") found.push(...known.map((name) => ({ name, patterns: [] })))
    else if (last === undefined)
      throw new Error(`there is no suite "${word}"; there are: ${known.join(", ")}`)
    else last.patterns.push(word)
  }
  return found
}

const settingsOf = (values: { data?: string; events?: string; days?: string }): Settings => {
  const [events, days] = [whole("events", values.events), whole("days", values.days)]
  return {
    ...(values.data === undefined ? {} : { data: resolve(values.data) }),
    ...(events === undefined ? {} : { events }),
    ...(days === undefined ? {} : { days })
  }
}

/** Reads the command line; throws an error whose message tells what is wrong with it. */
export const readArguments = (args: ReadonlyArray<string>): Command => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      seconds: { type: "string" },
      against: { type: "string" },
      profile: { type: "boolean", default: false },
      results: { type: "string", default: usualResults },
      data: { type: "string" },
      events: { type: "string" },
      days: { type: "string" },
      help: { type: "boolean", short: "h", default: false }
    }
  })
  const [first, ...rest] = positionals
  if (first === undefined || values.help) return { do: "usage" }
  const results = resolve(values.results)
  if (first === "list") return { do: "list", results }
  const [one, other] = rest
  if (first === "show") {
    if (one === undefined) throw new Error("show: name a run; `list` shows those that there are")
    return { do: "show", results, run: one }
  }
  if (first === "compare") {
    if (one === undefined || other === undefined) throw new Error("compare: name two runs")
    return { do: "compare", results, first: one, second: other }
  }
  if (values.profile && values.against !== undefined)
    throw new Error("--profile is of one tree: it goes without --against")
  const seconds = positive("seconds", values.seconds)
  return {
    do: "run",
    asked: {
      suites: suitesOf(positionals),
      size: values.quick ? "quick" : "full",
      rounds: whole("rounds", values.rounds),
      windowMillis: seconds === undefined ? undefined : seconds * 1000,
      against: values.against,
      profiles: values.profile,
      results,
      settings: settingsOf(values)
    }
  }
}
