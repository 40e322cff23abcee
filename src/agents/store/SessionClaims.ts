import { Clock, Effect, Exit } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type ClaimedSession, NotOwner } from "#actors/agents/StepStore.ts"
import type { Limits } from "#src/Limits.ts"
import { recordColumns, recordOf, type RecordRow } from "./SessionColumns.ts"
import { readRecent } from "./StepReads.ts"

export interface ClaimAsk {
  readonly sessionId: string
  /** the asking user; undefined: the server itself */
  readonly userId: string | undefined
}

type Claimed = Exit.Exit<ClaimedSession | undefined, NotOwner>

/** Makes `owner` the owner of sessions that can be resumed. An id that is asked for twice is claimed twice, in order. */
export const claimsOf = (sql: SqlClient, owner: string, limits: Limits) =>
  Effect.fnUntraced(function* (
    asks: ReadonlyArray<ClaimAsk>
  ): Effect.fn.Return<ReadonlyArray<Claimed>, SqlError> {
    const answers: Array<Claimed> = []
    let places = Array.from(asks.entries())
    while (places.length > 0) {
      const round = new Map<string, readonly [place: number, ask: ClaimAsk]>()
      for (const [place, ask] of places) if (!round.has(ask.sessionId)) round.set(ask.sessionId, [place, ask])
      const wanted = Array.from(round.values(), ([, ask]) => ask)
      const claimed = yield* claimEach(sql, owner, limits, wanted)
      const foreign = yield* foreignAmong(
        sql,
        wanted.filter(({ sessionId }) => !claimed.has(sessionId))
      )
      for (const [id, [place]] of round)
        answers[place] = foreign.has(id)
          ? Exit.fail(new NotOwner({ sessionId: id }))
          : Exit.succeed(claimed.get(id))
      places = places.filter(([place]) => answers[place] === undefined)
    }
    return answers
  })

/** The ids among these that exist and belong to another user. */
const foreignAmong = Effect.fnUntraced(function* (
  sql: SqlClient,
  asks: ReadonlyArray<ClaimAsk>
): Effect.fn.Return<ReadonlySet<string>, SqlError> {
  if (asks.length === 0) return new Set()
  const rows = yield* sql<{ id: string }>`SELECT s.id FROM agent_sessions s
    JOIN ${asked(sql, asks)} ON a.id = s.id WHERE a.user_id NOT IN ('', s.user_id)`
  return new Set(rows.map(({ id }) => id))
})

/** `user_id` is empty if the server itself asks: a list of nulls has no type. */
const asked = (sql: SqlClient, asks: ReadonlyArray<ClaimAsk>) =>
  sql`unnest(${asks.map(({ sessionId }) => sessionId)}::text[],
    ${asks.map(({ userId }) => userId ?? "")}::text[]) AS a(id, user_id)`

/**
 * A client that asks is about to be attached, and is noted so at once; without one, no client is attached to a session with
 * a new owner. The steps are read in a statement of their own: it sees the writes
 * of an earlier owner that ended while the first one waited for it, and from then on that owner can write nothing more.
 */
const claimEach = Effect.fnUntraced(function* (
  sql: SqlClient,
  owner: string,
  limits: Limits,
  asks: ReadonlyArray<ClaimAsk>
): Effect.fn.Return<ReadonlyMap<string, ClaimedSession>, SqlError> {
  const now = yield* Clock.currentTimeMillis
  const seenAfter = new Date(now - limits.agentResumeMillis)
  // Rows are locked in the order of their ids everywhere, so that no two statements wait for each other.
  const rows = yield* sql<RecordRow>`WITH mine AS MATERIALIZED (
      SELECT s.id, a.user_id <> '' AS has_client FROM agent_sessions s JOIN ${asked(sql, asks)} ON a.id = s.id
      WHERE a.user_id IN ('', s.user_id) AND s.last_seen_at > ${seenAfter}
        AND (s.ended_at IS NULL OR s.end_reason = 'client_bye')
      ORDER BY s.id FOR NO KEY UPDATE OF s)
    UPDATE agent_sessions s SET epoch = s.epoch + 1, owner = ${owner}, version = 0,
      seq_reserved = s.seq_reserved + ${limits.agentSeqReserve},
      status = CASE s.status WHEN 'ended' THEN 'idle' ELSE s.status END, ended_at = NULL, end_reason = NULL,
      detached_at = CASE WHEN NOT mine.has_client THEN coalesce(s.detached_at, s.last_seen_at) END,
      last_seen_at = CASE WHEN mine.has_client THEN greatest(s.last_seen_at, ${new Date(now)}) ELSE s.last_seen_at END
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
