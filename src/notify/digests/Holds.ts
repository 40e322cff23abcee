import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { holdSpanAt, readSchedule } from "#streams/notify/digests/Due.ts"

/** Messages of one project and kind of priority that are held for a subscriber, and the settings that count for them now. */
interface HeldOfProject {
  readonly project: string
  readonly is_high: boolean
  /** false: the project was left, or is muted */
  readonly is_wanted: boolean
  /** null: at once */
  readonly schedule: string | null
  readonly now_millis: number
}

/** An instant as Postgres reads it in an array of texts. */
const textOf = (millis: number): string =>
  Number.isFinite(millis) ? new Date(millis).toISOString() : "infinity"

/**
 * Messages that wait for a digest, or for the end of quiet hours: when each is due. Acceptance (`deliveries_fan_out`) holds
 * them, `Digests.ts` has them go. Source: contract/notify#digests.
 */
export class Holds extends Context.Service<
  Holds,
  {
    /**
     * Changes settings of a subscriber: in one transaction with what `change` does, under the lock of their row, and what
     * is held for them is due by the new settings. What was due already stays so; by settings that do not hold it is due now.
     * Of projects that are muted or left it is dropped. Messages that are being accepted are held by the old settings
     * and counted here, or by the new ones. Without a row of that id nothing is held, and `change` has its way.
     */
    readonly changing: <A, E, R>(
      subscriberId: string,
      change: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | SqlError, R>
    /** Within a transaction: from now on acceptance knows when messages by these schedules are due. */
    readonly know: (schedules: ReadonlyArray<string>, nowMillis: number) => Effect.Effect<void, SqlError>
  }
>()("signalbox/notify/Holds") {
  static readonly layer = Layer.effect(
    Holds,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const settle = settling(sql)
      return Holds.of({
        changing: (subscriberId, change) =>
          sql.withTransaction(
            Effect.gen(function* () {
              // Of the same strength as acceptance waits for: it has shared locks on those for whom it holds.
              yield* sql`SELECT id FROM subscribers WHERE id = ${subscriberId} FOR UPDATE`
              const changed = yield* change
              yield* settle(subscriberId)
              return changed
            })
          ),
        know: (schedules, acceptedMillis) => {
          const nowMillis = Math.floor(acceptedMillis)
          const spans = schedules.toSorted().map((schedule) => holdSpanAt(readSchedule(schedule), nowMillis))
          return Effect.asVoid(sql`INSERT INTO hold_instants (schedule, since, until, due_at)
            SELECT k.schedule, ${textOf(nowMillis)}::timestamptz, k.until::timestamptz, nullif(k.due, '')::timestamptz
            FROM unnest(${schedules.toSorted()}::text[], ${spans.map(({ untilMillis }) => textOf(untilMillis))}::text[],
              ${spans.map(({ dueMillis }) => (dueMillis === undefined ? "" : textOf(dueMillis)))}::text[])
              AS k(schedule, until, due)
            ON CONFLICT DO NOTHING`)
        }
      })
    })
  )
}

/** Has what is held for a subscriber be due by their settings. */
const settling = (sql: SqlClient) =>
  Effect.fnUntraced(function* (subscriberId: string) {
    const held = yield* sql<HeldOfProject>`
      SELECT m.project_id AS project, m.priority = 'high' AS is_high, s.project_id IS NOT NULL AND s.delivery <> 'muted' AS is_wanted,
        CASE WHEN m.priority <> 'high' OR s.holds_high THEN s.schedule END AS schedule,
        (SELECT extract(epoch FROM jobs_now()))::float8 * 1000 AS now_millis
      FROM deliveries d JOIN messages m ON m.id = d.message_id
        LEFT JOIN project_subscriptions s ON s.project_id = m.project_id AND s.subscriber_id = d.subscriber_id
      WHERE d.subscriber_id = ${subscriberId} AND d.held_until IS NOT NULL
      GROUP BY 1, 2, 3, 4`
    if (held.length === 0) return
    const nowMillis = Math.floor(held[0]?.now_millis ?? 0)
    const due = held.map(({ is_wanted: isWanted, schedule }) => {
      if (!isWanted) return ""
      const dueMillis =
        schedule === null ? undefined : holdSpanAt(readSchedule(schedule), nowMillis).dueMillis
      return textOf(dueMillis ?? nowMillis)
    })
    yield* sql`UPDATE deliveries d SET held_until = nullif(k.due, '')::timestamptz,
        dropped_at = CASE k.due WHEN '' THEN now() END
      FROM messages m JOIN unnest(${held.map(({ project }) => project)}::text[],
          ${held.map(({ is_high: isHigh }) => String(isHigh))}::text[]::boolean[], ${due}::text[]) AS k(project, is_high, due)
        ON k.project = m.project_id AND k.is_high = (m.priority = 'high')
      WHERE d.subscriber_id = ${subscriberId} AND d.held_until IS NOT NULL AND m.id = d.message_id
        AND (k.due = '' OR (d.held_until > ${textOf(nowMillis)}::timestamptz
          AND d.held_until <> nullif(k.due, '')::timestamptz))`
  })
