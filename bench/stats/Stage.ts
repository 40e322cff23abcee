import { execFileSync } from "node:child_process"
import { existsSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { PrepareContext, Settings, Stage, StageContext } from "#bench/harness/Suite.ts"
import { createSite } from "#test/harness/ApiClient.ts"
import { root } from "#test/harness/ServerProcess.ts"
import { endOfFilled, type FilledServer, type FillOptions, mergeParts, openFilled } from "./FilledServer.ts"
import { makeObvious } from "./ObviousSchema.ts"
import type { Target, Targets } from "./Targets.ts"

const dayMillis = 86_400_000
/** Data that ended longer ago would leave "today" empty. */
const oldestMillis = 12 * 3_600_000

export const recentParts = 30

const targetOf = ({ clickhouseUrl, server, site, storePid }: FilledServer): Target => ({
  url: server.url,
  key: server.adminKey(),
  site,
  pid: server.pid(),
  clickhouseUrl,
  storePid
})

/** No part of it is merged any more, also after the next start. */
const stopMerges = async ({ clickhouse }: FilledServer): Promise<void> => {
  for (const table of ["events", "visits"]) {
    await clickhouse.command({
      query: `ALTER TABLE ${table} MODIFY SETTING
        max_bytes_to_merge_at_min_space_in_pool = 1, max_bytes_to_merge_at_max_space_in_pool = 1`
    })
  }
}

const partsOf = async ({ clickhouse }: FilledServer, table: string): Promise<number> => {
  const answer = await clickhouse.query({
    query: `SELECT toUInt32(count()) AS parts FROM system.parts
      WHERE database = currentDatabase() AND active AND table = {table:String}`,
    query_params: { table },
    format: "JSONEachRow"
  })
  return (await answer.json<{ parts: number }>())[0]?.parts ?? 0
}

/** Fills both directories: the one to be merged, and its copy as it was 24 hours before, the rest in 30 parts. */
const fillBoth = async (options: FillOptions, apartDirectory: string): Promise<void> => {
  const { directory, untilMillis } = options
  const earlier = await openFilled({ ...options, untilMillis })
  try {
    await earlier.fillUntil(untilMillis - dayMillis)
    await mergeParts(earlier.clickhouse)
  } finally {
    await earlier.close()
  }
  // With owners: the embedded Postgres runs as an account of its own.
  const unfinished = `${apartDirectory}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  execFileSync("cp", ["-a", directory, unfinished])
  const apart = await openFilled({ ...options, directory: unfinished })
  try {
    await stopMerges(apart)
    await apart.fillUntil(untilMillis, recentParts)
  } finally {
    await apart.close()
  }
  const merged = await openFilled(options)
  try {
    await merged.fillUntil(untilMillis)
    await mergeParts(merged.clickhouse)
    await makeObvious(merged.clickhouse, untilMillis - options.days * dayMillis - dayMillis, untilMillis)
  } finally {
    await merged.close()
  }
  renameSync(unfinished, apartDirectory)
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

/** The directory of data kept between runs, ignored by git. */
const keptIn = ({ settings }: PrepareContext): string => {
  const { days, events } = optionsOf({ settings }, "")
  return settings.data ?? join(root, ".runtime/bench", `stats-${events}-events-${days}-days`)
}

/** Fills the kept data where it is missing or ended too long ago, and copies it for each side of a comparison. */
export const prepare = async (context: PrepareContext): Promise<ReadonlyArray<Settings>> => {
  const { copies, say, settings, size } = context
  if (size === "tiny") return [settings]
  const data = keptIn(context)
  const end = endOf(data)
  if (end === undefined || Date.now() - end > oldestMillis) {
    const options = optionsOf(context, mergedIn(data))
    say(
      `Filling ${data} with ${options.events.toLocaleString("en-US")} events; it is used again for 12 hours`
    )
    rmSync(data, { recursive: true, force: true })
    const startedAt = performance.now()
    await fillBoth(options, apartIn(data))
    say(`Filled in ${Math.round((performance.now() - startedAt) / 1000)} s`)
  }
  // With owners: the embedded Postgres runs as an account of its own.
  for (const copy of copies) execFileSync("cp", ["-a", `${data}/.`, copy])
  return copies.length === 0 ? [{ ...settings, data }] : copies.map((copy) => ({ ...settings, data: copy }))
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
