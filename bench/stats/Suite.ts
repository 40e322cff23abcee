import { type BenchCase, type BenchSuite, fullOnly } from "#bench/harness/Suite.ts"
import { clientOf, figuresOf, measure, rowsOf, type StatsContext } from "./Measuring.ts"
import * as Obvious from "./ObviousSchema.ts"
import { filledTimeZone } from "./FilledServer.ts"
import { apartSuffix, prepare, stage } from "./Stage.ts"
import { storage } from "./Storage.ts"
import type { Target, Targets } from "./Targets.ts"

type StatsCase = BenchCase<Targets>

const goal = "Signup"

interface Counted {
  readonly visitors: number
  readonly pageviews: number
}

/** Visitors and page views of the period, in which every way of counting has to agree. */
const ofSummary = (answer: unknown): string => {
  const { summary } = answer as { readonly summary: Counted }
  return `${summary.visitors} visitors, ${summary.pageviews} page views`
}

const ofRows = (answer: unknown): string => {
  const { rows } = answer as { readonly rows: ReadonlyArray<Counted & { readonly value: string | null }> }
  return rows.map(({ pageviews, value, visitors }) => `${value ?? ""} ${visitors} ${pageviews}`).join(", ")
}

/** The server of each target: the one whose months are one part each, the one with the last day in 30, or none. */
const targets = {
  merged: { suffix: "", of: ({ merged }: Targets): Target => merged },
  apart: { suffix: apartSuffix, of: ({ apart }: Targets): Target => apart },
  empty: {
    suffix: ", no events",
    of: ({ emptySite, merged }: Targets): Target => ({ ...merged, site: emptySite })
  }
}

/** `GET /api/v1/sites/:id/<path>` */
const asked = (
  group: string,
  path: string,
  whose: keyof typeof targets = "merged",
  resultOf: (answer: unknown) => string | undefined = () => undefined,
  compared: StatsCase["compared"] = "full"
): StatsCase => {
  const { of, suffix } = targets[whose]
  const name = group + suffix
  return {
    name,
    group: whose === "empty" ? name : group,
    compared,
    sideBySide: true,
    run: (context) => {
      const target = of(context.given)
      return measure(context, target, () => figuresOf(target, path), resultOf)
    }
  }
}

/** Both states of the data, for the questions that have a target. */
const askedOfBoth = (
  name: string,
  path: string,
  resultOf: (answer: unknown) => string,
  compared: StatsCase["compared"] = "full"
): ReadonlyArray<StatsCase> => [
  asked(name, path, "merged", resultOf, compared),
  asked(name, path, "apart", resultOf)
]

type Rows = Awaited<ReturnType<typeof rowsOf>>

/** The same question to the obvious schema, without any server between. */
const obvious = (
  group: string,
  name: string,
  statements: (question: Obvious.ObviousQuestion) => ReadonlyArray<string>,
  resultOf: (rows: Rows) => string | undefined,
  baseline = true
): StatsCase => ({
  name: `${group}, ${name}`,
  group,
  ...(baseline ? { baseline } : {}),
  run: async (context: StatsContext) => {
    const target: Target = context.given.merged
    const clickhouse = clientOf(target)
    const ask = () =>
      rowsOf(clickhouse, statements({ site: target.site, timeZone: filledTimeZone, nowMillis: Date.now() }))
    try {
      return await measure(context, target, ask, resultOf)
    } finally {
      await clickhouse.close()
    }
  }
})

const ofFirst = ([rows = []]: Rows): string => ofSummary({ summary: rows[0] })
const ofAll = ([rows = []]: Rows): string => ofRows({ rows })

const summary = "summary 30d"
const pages = "pages 30d"
const pagesOfGoal = "pages 30d, goal"
const sources = "sources 30d"

const filters: ReadonlyArray<readonly [string, string]> = [
  ["page", "/pricing"],
  ["page", "/blog/*"],
  ["source", "Google"],
  ["country", "DE"],
  ["browser", "Firefox"],
  ["os", "Windows"],
  ["device", "mobile"],
  ["campaign", "week-60"],
  ["campaign", "(none)"],
  ["event", goal],
  ["event", "*"],
  ["channel", "Search"]
]

const furtherCases: ReadonlyArray<StatsCase> = [
  ...askedOfBoth(pagesOfGoal, `breakdown?dimension=page&period=30d&limit=10&event=${goal}`, ofRows),
  // Of a visit that runs over the period's edge it does not see what was fired before.
  obvious(
    pagesOfGoal,
    "obvious schema",
    (question) => Obvious.pages(question, goal),
    () => undefined
  ),
  ...askedOfBoth(sources, "breakdown?dimension=source&period=30d&limit=10", ofRows),
  // Nor where such a visit came from.
  obvious(sources, "obvious schema", Obvious.sources, () => undefined),
  ...["entry", "country", "event", "prop:plan"].map((dimension) =>
    asked(`${dimension} 30d`, `breakdown?dimension=${dimension}&period=30d`)
  ),
  ...filters.map(([name, value]) =>
    asked(`summary 30d, ${name}=${value}`, `stats?period=30d&${name}=${encodeURIComponent(value)}`)
  ),
  ...["today", "7d", "12mo"].map((period) => asked(`summary ${period}`, `stats?period=${period}`)),
  asked("pages 12mo", "breakdown?dimension=page&period=12mo")
]

export const suite: BenchSuite<Targets> = {
  name: "stats",
  about:
    "a site with 10 million events, 3 million visits and 50,000 paths in 60 days, asked over HTTP one question at a time, " +
    "beside the obvious schema (one table of events with visitor and session, asked directly)",
  unit: "queries",
  rounds: 3,
  prepare,
  stage,
  cases: [
    ...askedOfBoth(summary, "stats?period=30d", ofSummary, "always"),
    asked(summary, "stats?period=30d", "empty"),
    obvious(summary, "obvious schema", Obvious.summary, ofFirst),
    fullOnly(obvious(summary, "sessions by window", Obvious.summaryBySessionsOfNow, ofFirst, false)),
    ...askedOfBoth(pages, "breakdown?dimension=page&period=30d&limit=10", ofRows, "always"),
    obvious(pages, "obvious schema", (question) => Obvious.pages(question), ofAll),
    asked(pages, "breakdown?dimension=page&period=30d&limit=10", "empty"),
    ...furtherCases.map(fullOnly),
    asked("realtime", "realtime"),
    { name: "bytes", group: "bytes", run: storage }
  ]
}
