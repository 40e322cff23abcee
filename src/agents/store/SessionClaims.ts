import { Clock, Effect, Exit } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ClaimedSession } from "#actors/agents/StepStore.ts"
import type { Limits } from "#src/Limits.ts"
import { recordColumns, recordOf, type RecordRow } from "./SessionColumns.ts"
import { readRecent } from "./StepReads.ts"

/** Makes `owner` the owner of sessions that can be resumed. An id that is asked for twice is claimed twice, in order. */
export const claimsOf = (sql: SqlClient, owner: string, limits: Limits) =>
  Effect.fnUntraced(function* (
    ids: ReadonlyArray<string>
  ): Effect.fn.Return<ReadonlyArray<Exit.Exit<ClaimedSession | undefined>>, SqlError> {
    const answers: Array<Exit.Exit<ClaimedSession | undefined>> = []
    let places = Array.from(ids.keys())
    while (places.length > 0) {
      const round = new Map<string, number>()
      for (const place of places) if (!round.has(ids[place] ?? "")) round.set(ids[place] ?? "", place)
      const claimed = yield* claimEach(sql, owner, limits, Array.from(round.keys()))
      for (const [id, place] of round) answers[place] = Exit.succeed(claimed.get(id))
      places = places.filter((place) => answers[place] === undefined)
    }
    return answers
  })

/**
 * Nobody is attached to a session whose owner is new. The steps are read in a statement of their own: it sees what an
 * earlier owner wrote while the first one waited for it, and from then on that owner can write nothing more.
 */
const claimEach = Effect.fnUntraced(function* (
  sql: SqlClient,
  owner: string,
  limits: Limits,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, ClaimedSession>, SqlError> {
  const seenAfter = new Date((yield* Clock.currentTimeMillis) - limits.agentResumeMillis)
  // Rows are locked in the order of their ids everywhere, so that no two statements wait for each other.
  const rows = yield* sql<RecordRow>`WITH mine AS MATERIALIZED (
      SELECT s.id FROM agent_sessions s
      WHERE s.id = ANY(${ids}::text[]) AND s.last_seen_at > ${seenAfter}
        AND (s.ended_at IS NULL OR s.end_reason = 'client_bye')
      ORDER BY s.id FOR NO KEY UPDATE)
    UPDATE agent_sessions s SET epoch = s.epoch + 1, owner = ${owner}, version = 0,
      seq_reserved = s.seq_reserved + ${limits.agentSeqReserve},
      status = CASE s.status WHEN 'ended' THEN 'idle' ELSE s.status END, ended_at = NULL, end_reason = NULL,
      detached_at = coalesce(s.detached_at, s.last_seen_at)
    FROM mine WHERE s.id = mine.id RETURNING ${sql.literal(recordColumns)}`
  const records = rows.map(recordOf)
  const wanted = records.map(({ facts, state }) => ({ id: facts.id, from: state.baseStep }))
  const recent = yield* readRecent(sql, wanted, limits.agentBatchBytes)
  return new Map(
    records.map((record) => [
      record.facts.id,
      {
        ...record,
        seqUsed: record.state.seqReserved - limits.agentSeqReserve,
        recent: recent.get(record.facts.id) ?? []
      }
    ])
  )
})
