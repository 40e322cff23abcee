import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { again, backoffMillis, dead, done, type Job, type Outcome } from "#src/infra/jobs/Job.ts"
import type { Limits } from "#src/Limits.ts"
import type { Verdict } from "#streams/notify/channels/Channel.ts"
import type { DeliveryMetrics } from "./DeliveryMetrics.ts"
import type { deliveries } from "./Deliveries.ts"
import { type DeliveryChannel, isDigest } from "./DeliveryRows.ts"

export type DeliveryJob = Job<(typeof deliveries)["payload"]["Type"]>

type Change = Effect.Effect<unknown, SqlError>

/** The service says that an address is no more; the channel may have another one by now, or be off. */
export const lose = (sql: SqlClient, id: string, { target }: DeliveryChannel) =>
  sql`UPDATE channels SET state = 'gone'
    WHERE id = ${id} AND target = ${JSON.stringify(target)}::jsonb AND state <> 'off' RETURNING id`

/** Changes of rows with which deliveries end, each in the transaction that ends its job. */
const changesOf = (sql: SqlClient, { deadInARow }: Limits) => ({
  /** The message's owner sees that it was not made; of a digest each owner does. */
  drop: ({ lane, payload }: DeliveryJob): Change => {
    const rows = sql`UPDATE deliveries SET dropped_at = now()
      WHERE message_id = ${payload.message} AND channel_id = ${lane} AND dropped_at IS NULL`
    return isDigest(payload.message)
      ? Effect.andThen(
          rows,
          sql`UPDATE deliveries SET dropped_at = now()
            WHERE digest_id = ${payload.message} AND channel_id = ${lane} AND dropped_at IS NULL`
        )
      : rows
  },
  /** The messages of a digest are dead deliveries from now on, which their owners see and have wait again. */
  giveUpItems: ({ attempt, lane, offeredAt, payload, repeated }: DeliveryJob, error: string): Change =>
    sql`WITH items AS (
        UPDATE deliveries SET digest_id = NULL
        WHERE digest_id = ${payload.message} AND channel_id = ${lane} AND dropped_at IS NULL RETURNING message_id, id)
      INSERT INTO jobs_ended (queue, lane, seq, id, outcome, attempts, repeated, last_error, payload, offered_at, ended_at)
      SELECT 'deliveries', ${lane}, nextval('job_seqs'), o.id, 'dead', ${attempt}::int, ${repeated}, ${error},
        jsonb_build_object('message', o.message_id, 'owner', o.user_id, 'digest', ${payload.message}::text), ${offeredAt},
        jobs_now()
      FROM (SELECT i.id, i.message_id, m.user_id FROM items i JOIN messages m ON m.id = i.message_id ORDER BY m.seq) AS o`,
  lose: (id: string, channel: DeliveryChannel): Change => lose(sql, id, channel),
  miss: (channel: string): Change => sql`UPDATE channels SET dead_in_a_row = dead_in_a_row + 1,
      state = CASE WHEN state = 'active' AND dead_in_a_row + 1 >= ${deadInARow} THEN 'failing' ELSE state END
    WHERE id = ${channel}`,
  recover: (channel: string): Change => sql`UPDATE channels SET dead_in_a_row = 0,
      state = CASE state WHEN 'failing' THEN 'active' ELSE state END
    WHERE id = ${channel}`
})

/** An attempt, as its end needs it. */
export interface Attempted {
  readonly job: DeliveryJob
  readonly channel: DeliveryChannel
  /** that are left of its 72 hours */
  readonly lifeMillis: number
}

interface Given {
  /** its 72 hours are over */
  readonly isAged?: boolean
  readonly restMillis?: number
}

/** Consequences of an attempt for its job, its channel and those that wait behind it. */
export const makeEnds = Effect.fnUntraced(function* (metrics: DeliveryMetrics) {
  const { limits } = yield* AppConfig
  const changes = changesOf(yield* SqlClient, limits)

  /** Given up: the lane goes on, after the pause that the service asked for. */
  const given = (
    { channel, job }: Attempted,
    error: string,
    { isAged = false, restMillis = 0 }: Given = {}
  ): Outcome => {
    metrics.ended(channel.kind, "dead")
    // Telegram says of a chat at once that it takes nothing. What waited for days waited for the service, or a token.
    const isBlameless = isAged && channel.kind === "telegram"
    const missed = isBlameless ? undefined : changes.miss(job.lane)
    if (!isDigest(job.payload.message)) return { ...dead(error, missed), restMillis }
    const givenUp = changes.giveUpItems(job, error)
    return {
      ...done(missed === undefined ? givenUp : Effect.andThen(missed, givenUp)),
      error,
      restMillis
    }
  }

  return {
    given,
    /** There is no channel to send it to. */
    dropped: (job: DeliveryJob): Outcome => {
      metrics.ended("none", "dropped")
      return done(changes.drop(job))
    },
    of: (attempted: Attempted, verdict: Verdict): Outcome => {
      const { channel, job, lifeMillis } = attempted
      switch (verdict._tag) {
        case "Delivered":
          metrics.ended(channel.kind, "delivered")
          return done(channel.deadInARow > 0 ? changes.recover(job.lane) : undefined, verdict.afterMillis)
        case "Gone":
          metrics.ended(channel.kind, "dropped")
          return {
            ...done(Effect.andThen(changes.lose(job.lane, channel), changes.drop(job))),
            error: verdict.error
          }
        case "Again": {
          const restMillis = verdict.afterMillis ?? backoffMillis(limits, job.attempt)
          return restMillis < lifeMillis
            ? again(verdict.error, restMillis)
            : given(attempted, `${verdict.error}, until it was too old`, { isAged: true, restMillis })
        }
        default:
          return given(attempted, verdict.error)
      }
    }
  }
})
