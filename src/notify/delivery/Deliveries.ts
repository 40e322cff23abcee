import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { type BadRequest, invalidField } from "#schemas/core/Problem.ts"
import type { Redrive } from "#schemas/notify/DeliveryApi.ts"
import { AppConfig } from "#src/Config.ts"
import { queue } from "#src/infra/jobs/Job.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"

/**
 * A job a delivery, of its id, in a lane a channel. How long it is tried is a matter of time, not of attempts.
 * `deliveries_fan_out` (0020_Notify.ts) offers them.
 */
export const deliveries = queue(
  "deliveries",
  Schema.Struct({ message: Schema.String, owner: Schema.String }),
  { attemptsMax: Infinity, isKept: true }
)

/** Deliveries that were given up. Source: contract/notify#deliveries. */
export class Deliveries extends Context.Service<
  Deliveries,
  {
    /** Those of the owner wait again, behind the others of their channels and in their order; answers how many. */
    readonly redrive: (owner: string, which: Redrive) => Effect.Effect<number, BadRequest | SqlError>
  }
>()("signalbox/notify/Deliveries") {
  static readonly layer = Layer.effect(
    Deliveries,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const jobs = yield* Jobs
      const sql = yield* SqlClient

      const isMeant = (
        owner: string,
        { channel, ids, message, project }: Redrive
      ): ReadonlyArray<Fragment> => [
        ...(ids === undefined ? [] : [sql`e.id = ANY (${ids}::text[])`]),
        ...(message === undefined ? [] : [sql`e.payload ->> 'message' = ${message}`]),
        ...(channel === undefined ? [] : [sql`e.lane = ${channel}`]),
        ...(project === undefined
          ? []
          : [
              sql`EXISTS (SELECT FROM messages m JOIN projects p ON p.id = m.project_id
                WHERE m.id = d.message_id AND p.user_id = ${owner} AND p.deleted_at IS NULL
                  AND (p.id = ${project} OR p.slug = ${project}))`
            ])
      ]

      const redrive = Effect.fn("Deliveries.redrive")(function* (owner: string, which: Redrive) {
        const [meant, ...more] = isMeant(owner, which)
        if (meant === undefined || more.length > 0)
          return yield* invalidField("ids", "expected one of ids, message, project and channel, and no other")
        // Those of deleted messages have no row.
        const dead = yield* sql<{
          id: string
          is_item: boolean
        }>`SELECT e.id, e.payload ? 'digest' AS is_item FROM jobs_ended e
          JOIN deliveries d ON d.message_id = e.payload ->> 'message' AND d.channel_id = e.lane
          WHERE e.queue = 'deliveries' AND e.outcome = 'dead' AND e.payload ->> 'owner' = ${owner} AND ${meant}
          ORDER BY e.seq LIMIT ${limits.deliveriesPerRedrive}`
        const [items, others] = [true, false].map((isItem) =>
          dead.filter((one) => one.is_item === isItem).map(({ id }) => id)
        )
        return yield* sql.withTransaction(
          Effect.gen(function* () {
            const held = items?.length ? yield* holdAgain(sql, items) : 0
            return held + (others?.length ? yield* jobs.redrive(deliveries.name, others, others.length) : 0)
          })
        )
      })
      return Deliveries.of({ redrive })
    })
  )
}

/** Messages of digests that were given up are due now, at one instant: those of one subscriber make a digest again. */
const holdAgain = (sql: SqlClient, ids: ReadonlyArray<string>) =>
  Effect.map(
    sql`WITH revived AS (
        DELETE FROM jobs_ended WHERE ctid = ANY (ARRAY(SELECT ctid FROM jobs_ended
          WHERE queue = 'deliveries' AND outcome = 'dead' AND id = ANY (${ids}::text[]) FOR UPDATE SKIP LOCKED))
        RETURNING payload ->> 'message' AS message, lane)
      UPDATE deliveries d SET held_until = (SELECT jobs_now()), held_seq = nextval('job_seqs') FROM revived r
      WHERE d.message_id = r.message AND d.channel_id = r.lane RETURNING d.id`,
    ({ length }) => length
  )

/** Deliveries that ended long ago, with their outcomes, some at a time. Source: contract/notify#deliveries. */
export const endedDeliveries = Sweeps.layer({
  name: "deliveries",
  every: "sweepEveryMillis",
  run: Effect.gen(function* () {
    const { limits } = yield* AppConfig
    const sql = yield* SqlClient
    while (true) {
      const [row] = yield* sql<{ ended: number }>`
        WITH old AS (
          DELETE FROM jobs_ended WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM jobs_ended
            WHERE queue = 'deliveries' AND ended_at < jobs_now() - ${limits.deliveriesKeptMillis} * interval '1 millisecond'
              AND (outcome = 'done' OR ended_at < jobs_now() - ${limits.deliveriesDeadMillis} * interval '1 millisecond')
            LIMIT ${limits.jobsDeletedAtOnce} FOR UPDATE SKIP LOCKED))
          RETURNING payload ->> 'message' AS message, lane),
        items AS (DELETE FROM deliveries d USING old WHERE d.digest_id = old.message AND d.channel_id = old.lane),
        rows AS (DELETE FROM deliveries d USING old WHERE d.message_id = old.message AND d.channel_id = old.lane)
        SELECT count(*)::int AS ended FROM old`
      if ((row?.ended ?? 0) < limits.jobsDeletedAtOnce) return
    }
  })
})
