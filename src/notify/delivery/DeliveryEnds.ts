import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { again, backoffMillis, dead, done, type Job, type Outcome } from "#src/infra/jobs/Job.ts"
import type { Limits } from "#src/Limits.ts"
import type { Verdict } from "#streams/notify/channels/Channel.ts"
import type { DeliveryMetrics } from "./DeliveryMetrics.ts"
import type { deliveries } from "./Deliveries.ts"
import type { DeliveryChannel } from "./DeliveryRows.ts"

export type DeliveryJob = Job<(typeof deliveries)["payload"]["Type"]>

type Change = Effect.Effect<unknown, SqlError>

/** The service says that an address is no more; the channel may have another one by now, or be off. */
export const lose = (sql: SqlClient, id: string, { target }: DeliveryChannel) =>
  sql`UPDATE channels SET state = 'gone'
    WHERE id = ${id} AND target = ${JSON.stringify(target)}::jsonb AND state <> 'off' RETURNING id`

/** Changes of rows with which deliveries end, each in the transaction that ends its job. */
const changesOf = (sql: SqlClient, { deadInARow }: Limits) => ({
  /** The message's owner sees that it was not made. */
  drop: ({ lane, payload }: DeliveryJob): Change => sql`UPDATE deliveries SET dropped_at = now()
    WHERE message_id = ${payload.message} AND channel_id = ${lane} AND dropped_at IS NULL`,
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

/** Consequences of an attempt for its job, its channel and those that wait behind it. */
export const makeEnds = Effect.fnUntraced(function* (metrics: DeliveryMetrics) {
  const { limits } = yield* AppConfig
  const changes = changesOf(yield* SqlClient, limits)

  /** Given up: the lane goes on, after the pause that the service asked for. */
  const given = ({ channel, job }: Attempted, error: string, restMillis = 0): Outcome => {
    metrics.ended(channel.kind, "dead")
    return { ...dead(error, changes.miss(job.lane)), restMillis }
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
          return done(channel.deadInARow > 0 ? changes.recover(job.lane) : undefined)
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
            : given(attempted, `${verdict.error}, until it was too old`, restMillis)
        }
        default:
          return given(attempted, verdict.error)
      }
    }
  }
})
