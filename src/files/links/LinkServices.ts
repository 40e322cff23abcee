import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { AppConfig } from "#src/Config.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { LinkPasswords } from "./LinkPasswords.ts"
import { LinkUses } from "./LinkUses.ts"
import { LinkWatch } from "./LinkWatch.ts"
import { ShareLinks } from "./ShareLinks.ts"

/** Share links and what counts their uses; over directories and files. */
export const linkServices = Layer.mergeAll(ShareLinks.layer, LinkUses.layer, LinkWatch.layer).pipe(
  Layer.provideMerge(LinkPasswords.layer)
)

/**
 * Gives back the uses that a button began and of which nothing was taken or is being sent, and deletes uses and links that are old, and links
 * that lead to nothing for good. Source: contract/files#links.
 */
export const sweepLinks = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  const now = (yield* Clock.Clock).currentTimeMillisUnsafe()
  const before = (millis: number) => new Date(now - millis)
  yield* sql`WITH untaken AS (
      DELETE FROM share_uses WHERE sent = 0 AND held = 0 AND ticket_hash IS NOT NULL AND NOT is_complete
        AND open_until < ${before(0)}
      RETURNING token_hash),
    counted AS (SELECT token_hash, count(*)::int AS n FROM untaken GROUP BY token_hash)
    UPDATE share_links l SET uses = greatest(0, l.uses - c.n) FROM counted c WHERE l.token_hash = c.token_hash`
  const remove = (condition: Fragment) =>
    Effect.repeat(
      sql`DELETE FROM share_links WHERE token_hash IN (
        SELECT token_hash FROM share_links l WHERE ${condition} LIMIT ${limits.sweepRows}) RETURNING token_hash`,
      { while: (rows) => rows.length === limits.sweepRows }
    )
  yield* remove(sql`expires_at < ${before(limits.expiredUploadLinkMillis)} AND token_sealed IS NULL`)
  yield* remove(sql`expires_at < ${before(limits.expiredLinkMillis)}`)
  yield* remove(sql`group_id IS NOT NULL AND NOT EXISTS (SELECT FROM file_groups g WHERE g.id = l.group_id)`)
  yield* remove(
    sql`directory_id IS NOT NULL AND NOT EXISTS (SELECT FROM directories d WHERE d.id = l.directory_id)`
  )
  yield* sql`DELETE FROM share_uses WHERE started_at < ${before(limits.linkUseKeptMillis)}`
})

export const linkSweep = Sweeps.layer({ name: "share-links", every: "linkSweepEveryMillis", run: sweepLinks })
