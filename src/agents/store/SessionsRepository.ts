import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { isAlive } from "#src/infra/processes/Processes.ts"
import type { SessionRecord } from "#streams/agents/SessionRecord.ts"
import type { Step } from "#streams/agents/Step.ts"
import { recordColumns, recordOf, type RecordRow } from "./SessionColumns.ts"
import { stepColumns, stepOf, type StepRow } from "./StepReads.ts"

/** A session as its row has it, and whether the process that owns it lives. */
export interface StoredSession extends SessionRecord {
  readonly ownerLives: boolean
  /** it was made a moment ago: nothing tells yet that its first client is attached */
  readonly isNew: boolean
}

/** The facts of a step from which `steps` finds the end of a page. */
export interface StepSize {
  readonly index: number
  readonly kind: Step["body"]["kind"]
  /** of its content as it is stored */
  readonly bytes: number
}

/** Reads sessions without attaching to them. */
export const makeSessionsRepository = Effect.gen(function* () {
  const sql = yield* SqlClient
  const { limits } = yield* AppConfig
  // A session's first client is attached within milliseconds, without a write of its own.
  const columns = sql`${sql.literal(recordColumns)},
    s.epoch = 1 AND s.version = 0 AND s.started_at > clock_timestamp() - interval '1 second' AS is_new,
    ${isAlive(sql, sql`s.owner`, limits)} AS owner_lives`
  return {
    /** the latest first */
    list: (userId: string, limit: number): Effect.Effect<ReadonlyArray<StoredSession>, SqlError> =>
      Effect.map(
        sql<Row>`SELECT ${columns} FROM agent_sessions s WHERE s.user_id = ${userId}
              ORDER BY s.started_at DESC, s.id LIMIT ${limit}`,
        (rows) => rows.map(storedOf)
      ),
    /** undefined: there is none, or another user has it */
    find: (id: string, userId: string): Effect.Effect<StoredSession | undefined, SqlError> =>
      Effect.map(
        sql<Row>`SELECT ${columns} FROM agent_sessions s WHERE s.id = ${id} AND s.user_id = ${userId}`,
        ([row]) => (row === undefined ? undefined : storedOf(row))
      ),
    /** Ends it for good, and takes it from its owner. Does nothing if it has ended and cannot be resumed. */
    end: Effect.fnUntraced(function* (id: string) {
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`UPDATE agent_sessions SET epoch = epoch + 1, status = 'ended', ended_at = ${now},
              end_reason = 'ended_by_owner'
            WHERE id = ${id} AND (ended_at IS NULL OR end_reason = 'client_bye')`
    }),
    /** Sizes of the steps behind one, the first `limit`. */
    sizes: (id: string, after: number, limit: number): Effect.Effect<ReadonlyArray<StepSize>, SqlError> =>
      sql<StepSize>`SELECT index, kind, octet_length(content) AS bytes FROM agent_steps
            WHERE session_id = ${id} AND index > ${after} ORDER BY index LIMIT ${limit}`,
    /** The steps from one on, and before another. */
    steps: (id: string, from: number, before: number): Effect.Effect<ReadonlyArray<Step>, SqlError> =>
      Effect.map(
        sql<StepRow>`SELECT ${sql.literal(stepColumns)} FROM agent_steps t
              WHERE t.session_id = ${id} AND t.index >= ${from} AND t.index < ${before} ORDER BY t.index`,
        (rows) => rows.map(stepOf)
      )
  }
})

interface Row extends RecordRow {
  readonly is_new: boolean
  readonly owner_lives: boolean
}

const storedOf = (row: Row): StoredSession => ({
  ...recordOf(row),
  ownerLives: row.owner_lives,
  isNew: row.is_new
})
