import { Effect, Exit, Schedule } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { OwnershipLost, type SessionWrite } from "#actors/agents/StepStore.ts"
import type { Limits } from "#src/Limits.ts"
import type { SessionState } from "#streams/agents/SessionRecord.ts"
import type { Step } from "#streams/agents/Step.ts"
import { type BatchFailure, isGone } from "./BatchQueue.ts"
import { rowsText, stateColumns, stateDefinition, stateRow } from "./SessionColumns.ts"
import { contentOf } from "./StepReads.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"

/** A write with its steps as they are stored. */
export interface EncodedWrite extends SessionWrite {
  readonly contents: ReadonlyArray<string>
  readonly bytes: number
}

export const encode = (write: SessionWrite): EncodedWrite => {
  const contents = write.steps.map(contentOf)
  const bytes = contents.reduce((sum, content) => sum + Buffer.byteLength(content), 0)
  return { ...write, contents, bytes }
}

/** The writes of one session in one statement. */
interface Written {
  readonly sessionId: string
  readonly epoch: number
  state: SessionState
  readonly steps: Array<Step>
  readonly contents: Array<string>
}

type Answer = Exit.Exit<void, OwnershipLost>

/** Postgres's answer for one session */
interface Row {
  readonly id: string
  /** steps that were stored before; null: another process owns it */
  readonly stored: number | null
  readonly is_written: boolean
}

/** Writes of sessions by their owners; waits while Postgres is away. */
export class SessionWrites {
  private readonly sql: SqlClient
  private readonly limits: Limits
  private version = 0

  constructor(sql: SqlClient, limits: Limits) {
    this.sql = sql
    this.limits = limits
  }

  readonly run = (writes: ReadonlyArray<EncodedWrite>): Effect.Effect<ReadonlyArray<Answer>, BatchFailure> =>
    Effect.suspend(() => {
      const answers = new Map<SessionWrite, Answer>()
      const sessions = merged(writes, answers)
      this.version += 1
      return Effect.map(this.persist(sessions, this.version), (rows) => {
        const rowOf = new Map(rows.map((row) => [row.id, row]))
        return writes.map((write) => answers.get(write) ?? answerOf(write, rowOf.get(write.sessionId)))
      })
    })

  /** Repeats one statement until it is known to have been carried out. */
  private persist(
    sessions: ReadonlyArray<Written>,
    version: number
  ): Effect.Effect<ReadonlyArray<Row>, BatchFailure> {
    if (sessions.length === 0) return Effect.succeed([])
    const { limits } = this
    let isTold = false
    const tell = (error: BatchFailure) => {
      if (isTold || !isGone(error)) return Effect.void
      isTold = true
      return Effect.logWarning(`Steps of ${sessions.length} sessions wait for Postgres`, error)
    }
    return abandonedAfter(this.write(sessions, version), limits.agentWriteMillis).pipe(
      Effect.tapError(tell),
      Effect.retry({
        while: isGone,
        schedule: Schedule.min([
          Schedule.exponential(limits.retryMinMillis),
          Schedule.spaced(limits.retryMaxMillis)
        ])
      }),
      Effect.tap(() => (isTold ? Effect.logInfo("Steps are written again") : Effect.void))
    )
  }

  /**
   * A write whose version is already stored was carried out, and is not repeated: its acknowledgment was lost, or it is
   * a late one that was given up long ago. Rows are locked in the order of their ids, as everywhere.
   */
  private write(sessions: ReadonlyArray<Written>, version: number) {
    const { sql } = this
    const steps = sessions.flatMap(({ sessionId, steps }) => steps.map((step) => ({ sessionId, step })))
    const contents = sessions.flatMap((session) => session.contents)
    const given = sessions.map(({ epoch, sessionId, state, steps }) => ({
      id: sessionId,
      epoch,
      first_step: steps[0]?.index ?? null,
      next_step: steps[0] === undefined ? null : steps[0].index + steps.length,
      ...stateRow(state)
    }))
    return sql<Row>`WITH given AS MATERIALIZED (
        SELECT * FROM json_to_recordset(${rowsText(given)}::text::json)
          AS g(id text, epoch bigint, first_step integer, next_step integer, ${sql.literal(stateDefinition)})),
      owned AS MATERIALIZED (
        SELECT s.id, s.version, s.steps FROM agent_sessions s JOIN given g ON g.id = s.id AND g.epoch = s.epoch
        ORDER BY s.id FOR NO KEY UPDATE OF s),
      news AS MATERIALIZED (
        SELECT g.* FROM given g JOIN owned o ON o.id = g.id
        WHERE o.version < ${version} AND (g.first_step IS NULL OR g.first_step = o.steps)),
      written AS (
        UPDATE agent_sessions s SET version = ${version}, steps = coalesce(n.next_step, s.steps),
          ${sql.literal(assignments)}
        FROM news n WHERE n.id = s.id),
      added AS (
        INSERT INTO agent_steps (session_id, index, seq, at, kind, content)
        SELECT t.* FROM unnest(${steps.map(({ sessionId }) => sessionId)}::text[],
          ${steps.map(({ step }) => step.index)}::integer[], ${steps.map(({ step }) => step.seq)}::bigint[],
          ${steps.map(({ step }) => new Date(step.at))}::timestamptz[],
          ${steps.map(({ step }) => step.body.kind)}::text[], ${contents}::text[]
        ) AS t(session_id, index, seq, at, kind, content) JOIN news n ON n.id = t.session_id)
      SELECT g.id, o.steps AS stored, n.id IS NOT NULL OR coalesce(o.version >= ${version}, false) AS is_written
      FROM given g LEFT JOIN owned o ON o.id = g.id LEFT JOIN news n ON n.id = g.id`
  }
}

/** A sign of life that was noted beside (`touch`) may be later than the state's. */
const assignments = stateColumns
  .map((column) =>
    column === "last_seen_at"
      ? "last_seen_at = greatest(s.last_seen_at, n.last_seen_at)"
      : `${column} = n.${column}`
  )
  .join(", ")

/** Writes of one session as one: the last state, all steps. Writes that cannot be a part of it are answered here. */
const merged = (
  writes: ReadonlyArray<EncodedWrite>,
  answers: Map<SessionWrite, Answer>
): ReadonlyArray<Written> => {
  // This process may own a session again, while it still writes as its earlier owner.
  const epochs = new Map<string, number>()
  for (const { epoch, sessionId } of writes) {
    epochs.set(sessionId, Math.max(epoch, epochs.get(sessionId) ?? epoch))
  }
  const sessions = new Map<string, Written>()
  for (const write of writes) {
    const { contents, epoch, sessionId, state, steps } = write
    const known = sessions.get(sessionId)
    const next = (known?.steps.at(-1)?.index ?? (steps[0]?.index ?? 0) - 1) + 1
    if (epoch !== epochs.get(sessionId)) answers.set(write, Exit.fail(new OwnershipLost({ sessionId })))
    else if (steps.some(({ index }, place) => index !== next + place))
      answers.set(write, misplaced(write, next))
    else if (known === undefined) {
      sessions.set(sessionId, { sessionId, epoch, state, steps: [...steps], contents: [...contents] })
    } else {
      known.state = state
      known.steps.push(...steps)
      known.contents.push(...contents)
    }
  }
  return Array.from(sessions.values())
}

const answerOf = (write: SessionWrite, row: Row | undefined): Answer => {
  if (row === undefined || row.stored === null) {
    return Exit.fail(new OwnershipLost({ sessionId: write.sessionId }))
  }
  return row.is_written ? Exit.void : misplaced(write, row.stored)
}

const misplaced = ({ sessionId, steps }: SessionWrite, next: number): Answer =>
  Exit.die(new Error(`step ${steps[0]?.index} of ${sessionId} does not follow its ${next} steps`))
