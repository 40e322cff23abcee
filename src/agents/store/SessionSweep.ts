import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { isAlive, Processes } from "#src/infra/processes/Processes.ts"

/** Maintenance of all sessions together: signs of life, expired sessions, work without a process. */
export class SessionSweep extends Context.Service<
  SessionSweep,
  {
    /** Notes a sign of life of these sessions, as far as this process owns them. */
    readonly touch: (sessionIds: ReadonlyArray<string>) => Effect.Effect<void, SqlError>
    /** Sessions whose prompt no process works on: their owner has died, or left. */
    readonly abandoned: Effect.Effect<ReadonlyArray<string>, SqlError>
    /** Ends the sessions that can no longer be resumed; answers their number. */
    readonly expire: Effect.Effect<number, SqlError>
  }
>()("signalbox/agents/SessionSweep") {
  static readonly layer = Layer.effect(
    SessionSweep,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { limits } = yield* AppConfig
      const { id: owner } = yield* Processes

      const touchSome = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
        const now = new Date(yield* Clock.currentTimeMillis)
        yield* sql`WITH mine AS MATERIALIZED (
            SELECT s.id FROM agent_sessions s
            WHERE s.id = ANY(${ids}::text[]) AND s.owner = ${owner} AND s.ended_at IS NULL
            ORDER BY s.id FOR NO KEY UPDATE)
          UPDATE agent_sessions s SET last_seen_at = greatest(s.last_seen_at, ${now})
          FROM mine WHERE s.id = mine.id`
      })
      const chunks = (ids: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
        Array.from({ length: Math.ceil(ids.length / limits.agentBatchSessions) }, (_, chunk) =>
          ids.slice(chunk * limits.agentBatchSessions, (chunk + 1) * limits.agentBatchSessions)
        )

      const expire = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const seenBefore = new Date(now - limits.agentResumeMillis)
        // A higher epoch: a process that has it all the same can write nothing more.
        const ended = yield* sql`WITH old AS MATERIALIZED (
            SELECT s.id FROM agent_sessions s
            WHERE s.ended_at IS NULL AND s.started_at < ${seenBefore} AND s.last_seen_at < ${seenBefore}
            ORDER BY s.id LIMIT ${limits.agentBatchSessions} FOR NO KEY UPDATE SKIP LOCKED)
          UPDATE agent_sessions s SET epoch = s.epoch + 1, status = 'ended', ended_at = ${new Date(now)},
            end_reason = 'expired'
          FROM old WHERE s.id = old.id RETURNING s.id`
        return ended.length
      })

      return SessionSweep.of({
        touch: (ids) => Effect.forEach(chunks(ids), touchSome, { discard: true }),
        abandoned: Effect.map(
          sql<{ id: string }>`SELECT s.id FROM agent_sessions s
            WHERE s.status = 'running' AND NOT ${isAlive(sql, sql`s.owner`, limits)}`,
          (rows) => rows.map(({ id }) => id)
        ),
        expire
      })
    })
  )
}
