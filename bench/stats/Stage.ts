import { execFileSync } from "node:child_process"
import { existsSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Stage, StageContext } from "#bench/harness/Suite.ts"
import { createSite } from "#test/integration/ApiClient.ts"
import { type FilledServer, type FillOptions, mergeParts, openFilled } from "./FilledServer.ts"
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

const full = async ({ directory, sizes }: StageContext): Promise<Stage<Targets>> => {
  const kept = sizes.data ?? directory
  const [mergedDirectory, apartDirectory] = [join(kept, "merged"), join(kept, "apart")]
  const options: FillOptions = {
    directory: mergedDirectory,
    events: sizes.events ?? 10_000_000,
    days: sizes.days ?? 60,
    paths: 50_000,
    untilMillis: Date.now()
  }
  if (!existsSync(apartDirectory)) {
    rmSync(mergedDirectory, { recursive: true, force: true })
    await fillBoth(options, apartDirectory)
  }
  const merged = await openFilled(options)
  const apart = await openFilled({ ...options, directory: apartDirectory })
  const leave = async (): Promise<void> => {
    await merged.close()
    await apart.close()
  }
  try {
    await check(merged, apart)
    return { given: await givenOf(merged, apart), leave }
  } catch (error) {
    await leave()
    throw error
  }
}

/** Both have the same events, not long ago, in the parts that are to be compared. */
const check = async (merged: FilledServer, apart: FilledServer): Promise<void> => {
  const { events, untilMillis } = merged.filled()
  if (Date.now() - untilMillis > oldestMillis)
    throw new Error("The data ended too long ago; remove it, and fill anew")
  if (apart.filled().events !== events)
    throw new Error("The two directories hold different events; fill them anew")
  for (const table of ["events", "visits"]) {
    const parts = await partsOf(apart, table)
    if (parts < recentParts)
      throw new Error(`${table}: ${parts} parts where ${recentParts} are to be measured`)
  }
}

export const stage = (context: StageContext): Promise<Stage<Targets>> =>
  context.quick ? tiny(context) : full(context)
