import { execFileSync } from "node:child_process"
import { renameSync, rmSync } from "node:fs"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import { type FilledServer, type FillOptions, mergeParts, openFilled } from "./FilledServer.ts"
import { makeObvious } from "./ObviousSchema.ts"

/** The last day of the second directory is in so many parts. */
export const recentParts = 30

/** No part of it is merged any more, also after the next start. */
const stopMerges = async ({ clickhouse }: FilledServer): Promise<void> => {
  for (const table of ["events", "visits"]) {
    await clickhouse.command({
      query: `ALTER TABLE ${table} MODIFY SETTING
        max_bytes_to_merge_at_min_space_in_pool = 1, max_bytes_to_merge_at_max_space_in_pool = 1`
    })
  }
}

/** Fills two directories: one that is merged, and its copy as it was 24 hours before, the rest in 30 parts. */
export const fillPair = async (options: FillOptions, apartDirectory: string): Promise<void> => {
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
