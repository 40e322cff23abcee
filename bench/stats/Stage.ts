import { existsSync, readdirSync, rmSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { needProgram } from "#bench/harness/Program.ts"
import type { PrepareContext, Settings, Stage, StageContext } from "#bench/harness/Suite.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { createSite } from "#test/harness/ApiClient.ts"
import { root } from "#test/harness/ServerProcess.ts"
import { endOfFilled, type FilledServer, type FillOptions, openFilled } from "./FilledServer.ts"
import { recentParts } from "./FilledPair.ts"
import { makeObvious } from "./ObviousSchema.ts"
import type { Target, Targets } from "./Targets.ts"

/** Data that ended longer ago would leave "today" empty. */
const oldestMillis = 12 * 3_600_000

const targetOf = ({ clickhouseUrl, server, site, storePid }: FilledServer): Target => ({
  url: server.url,
  key: server.adminKey(),
  site,
  pid: server.pid(),
  clickhouseUrl,
  storePid
})

const partsOf = async ({ clickhouse }: FilledServer, table: string): Promise<number> => {
  const answer = await clickhouse.query({
    query: `SELECT toUInt32(count()) AS parts FROM system.parts
      WHERE database = currentDatabase() AND active AND table = {table:String}`,
    query_params: { table },
    format: "JSONEachRow"
  })
  return (await answer.json<{ parts: number }>())[0]?.parts ?? 0
}

const optionsOf = ({ settings }: Pick<StageContext, "settings">, directory: string): FillOptions => ({
  directory,
  events: settings.events ?? 10_000_000,
  days: settings.days ?? 60,
  paths: 50_000,
  untilMillis: Date.now()
})

const mergedIn = (data: string): string => join(data, "merged")
const apartIn = (data: string): string => join(data, "apart")

/** When the data in a directory ends; undefined where none has been filled whole. */
const endOf = (data: string): number | undefined =>
  existsSync(apartIn(data)) ? endOfFilled(mergedIn(data)) : undefined

/** A tree's number of migrations: its programs open data of every tree that has fewer. */
const schemaOf = (tree: string): number =>
  readdirSync(join(tree, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
    /migrations\/\w+\/\d{4}_\w+\.ts$/.test(file)
  ).length

/** The tree that fills the data: of the two of a comparison the one with the older schema, which both can open. */
const fillingTree = ({ kept }: PrepareContext): string =>
  kept.map((directory) => dirname(dirname(directory))).toSorted((a, b) => schemaOf(a) - schemaOf(b))[0] ??
  root

/** Data kept between runs; by default where git does not look. */
const keptIn = ({ settings }: PrepareContext, tree: string): string => {
  const { days, events } = optionsOf({ settings }, "")
  const name = `stats-${events}-events-${days}-days-${schemaOf(tree)}-migrations`
  return join(settings.data ?? join(root, ".runtime/bench"), name)
}

const isKept = (name: string): boolean => /^stats-\d+-events-\d+-days-\d+-migrations$/.test(name)

/** Data of other sizes or schemas, that has ended too long ago or was never filled whole, goes. */
const removeOld = (directory: string): void => {
  for (const name of existsSync(directory) ? readdirSync(directory).filter(isKept) : []) {
    const data = join(directory, name)
    const end = endOf(data) ?? statSync(data).mtimeMs
    if (Date.now() - end > oldestMillis) rmSync(data, { recursive: true, force: true })
  }
}

/** By the program of that tree, in a process of its own. */
const fill = (
  tree: string,
  { days, events }: FillOptions,
  data: string,
  signal: AbortSignal
): Promise<void> => {
  const options = ["--data", mergedIn(data), "--apart", apartIn(data), "--events", events, "--days", days]
  const args = [join(tree, "bench/stats/Fill.ts"), ...options.map(String)]
  return needProgram(process.execPath, args, { cwd: tree, signal, shows: "errors" })
}

/** Fills the kept data where it is missing or ended too long ago, and copies it for each side of a comparison. */
export const prepare = async (context: PrepareContext): Promise<ReadonlyArray<Settings>> => {
  const { kept, say, settings, signal, size } = context
  if (size === "tiny") return [settings]
  const tree = fillingTree(context)
  const data = keptIn(context, tree)
  const end = endOf(data)
  if (end === undefined || Date.now() - end > oldestMillis) {
    const options = optionsOf(context, mergedIn(data))
    say(
      `Filling ${data} with ${options.events.toLocaleString("en-US")} events; it is used again for 12 hours`
    )
    rmSync(data, { recursive: true, force: true })
    removeOld(dirname(data))
    const startedAt = performance.now()
    await fill(tree, options, data, signal)
    say(`Filled in ${Math.round((performance.now() - startedAt) / 1000)} s`)
  }
  // With owners: the embedded Postgres runs as an account of its own.
  for (const copy of kept) await needProgram("cp", ["-a", `${data}/.`, copy], { cwd: data, signal })
  return kept.length === 0 ? [{ ...settings, data }] : kept.map((copy) => ({ ...settings, data: copy }))
}

const givenOf = async (merged: FilledServer, apart: FilledServer): Promise<Targets> => {
  const { events, fillMillis } = merged.filled()
  const empty = await createSite(merged.server, "empty.example.com")
  return { merged: targetOf(merged), apart: targetOf(apart), emptySite: empty.id, events, fillMillis }
}

const tiny = async ({ directory }: StageContext): Promise<Stage<Targets>> => {
  const untilMillis = Date.now()
  const options = { directory: join(directory, "data"), events: 6_000, days: 3, paths: 300, untilMillis }
  const server = await openFilled(options)
  try {
    await server.fillUntil(untilMillis)
    await makeObvious(server.clickhouse, untilMillis - 3 * dayMillis, untilMillis)
    return { given: await givenOf(server, server), leave: server.close }
  } catch (error) {
    await server.close()
    throw error
  }
}

/** Case names of the data whose last day is in parts end so. */
export const apartSuffix = ", last day in 30 parts"

const full = async (context: StageContext): Promise<Stage<Targets>> => {
  const data = context.settings.data ?? context.directory
  const merged = await openFilled(optionsOf(context, mergedIn(data)))
  const isApartAsked = context.cases.some((name) => name.endsWith(apartSuffix))
  const apart = isApartAsked ? await openFilled(optionsOf(context, apartIn(data))) : merged
  const leave = async (): Promise<void> => {
    await merged.close()
    if (apart !== merged) await apart.close()
  }
  try {
    if (apart !== merged) await check(merged, apart)
    return { given: await givenOf(merged, apart), leave }
  } catch (error) {
    await leave()
    throw error
  }
}

/** Both have the same events, in the parts that are to be compared. */
const check = async (merged: FilledServer, apart: FilledServer): Promise<void> => {
  if (apart.filled().events !== merged.filled().events)
    throw new Error("The two directories hold different events; remove them, to have them filled anew")
  for (const table of ["events", "visits"]) {
    const parts = await partsOf(apart, table)
    if (parts < recentParts)
      throw new Error(`${table}: ${parts} parts where ${recentParts} are to be measured`)
  }
}

export const stage = (context: StageContext): Promise<Stage<Targets>> =>
  context.size === "tiny" ? tiny(context) : full(context)
