import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Holds } from "#src/notify/digests/Holds.ts"
import type { HoldSettings } from "#streams/notify/digests/Due.ts"
import { type Subscribed, subscribe } from "../Stage.ts"

export interface SubscriberSettings extends HoldSettings {
  readonly highPasses: boolean
}

export const settingsOf = (change: Partial<SubscriberSettings> = {}): SubscriberSettings => ({
  delivery: "instant",
  digestAt: null,
  quietFrom: null,
  quietTo: null,
  timezone: "Europe/Berlin",
  highPasses: true,
  ...change
})

/** Writes settings as a request does, within `Holds.changing`. */
export const writeSettings = (id: string, change: Partial<SubscriberSettings>) =>
  Effect.flatMap(SqlClient, (sql) => {
    const { delivery, digestAt, highPasses, quietFrom, quietTo, timezone } = settingsOf(change)
    return sql`UPDATE subscribers SET delivery = ${delivery}, digest_at = ${digestAt}, quiet_from = ${quietFrom},
      quiet_to = ${quietTo}, timezone = ${timezone}, high_passes = ${highPasses} WHERE id = ${id}`
  })

/** A subscriber with these settings, whose channels have a pause: what is sent to them waits. */
export const subscribeWith = Effect.fnUntraced(function* (
  projects: ReadonlyArray<string>,
  settings: Partial<SubscriberSettings>,
  more: { readonly channels?: number; readonly delivery?: string } = {}
) {
  const subscribed: Subscribed = yield* subscribe(projects, more)
  yield* Effect.orDie(writeSettings(subscribed.id, settings))
  return subscribed
})

export interface HeldRow {
  readonly id: string
  readonly message: string
  readonly channel: string
  readonly dueMillis: number | null
  readonly isDropped: boolean
  readonly hasJob: boolean
}

/** The deliveries of a subscriber, in the order of their messages. */
export const heldOf = (subscriber: string) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql<HeldRow>`SELECT d.id, d.message_id AS message, d.channel_id AS channel,
        (extract(epoch FROM d.held_until) * 1000)::float8 AS "dueMillis", d.dropped_at IS NOT NULL AS "isDropped",
        EXISTS (SELECT FROM jobs j WHERE j.queue = 'deliveries' AND j.id = d.id) AS "hasJob"
      FROM deliveries d JOIN messages m ON m.id = d.message_id
      WHERE d.subscriber_id = ${subscriber} ORDER BY m.seq, d.channel_id`
  )

/** Milliseconds of the clock by which digests are due. */
export const nowOfStore = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ now: number }>`SELECT extract(epoch FROM jobs_now())::float8 * 1000 AS now`,
    ([row]) => row?.now ?? 0
  )
)

/** A project of a new user, by statements alone. */
export const newProject = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [id, userId] = [newId("pjt"), newId("usr")]
  yield* sql`INSERT INTO users (id, email, name, role) VALUES (${userId}, ${`${userId}@example.org`}, 'Ada', 'user')`
  yield* sql`INSERT INTO projects (id, user_id, slug, name, description, joining, join_hash)
    VALUES (${id}, ${userId}, 'p', 'P', '', 'link', ${randomBytes(32)})`
  return id
})

interface FannedOut {
  readonly missing: string | null
  readonly now_millis: number
}

/** Accepts a message for the project as a send does, by the same statements; answers its id. */
export const acceptAs = Effect.fnUntraced(function* (project: string, id = newId("msg"), isHigh = false) {
  const sql = yield* SqlClient
  const holds = yield* Holds
  const fanOut = sql<FannedOut>`SELECT f.* FROM projects p, deliveries_fan_out(p.user_id, ${[id]}::text[], ${[project]}::text[],
    50000, ${isHigh}) f WHERE p.id = ${project}`
  yield* sql.withTransaction(
    Effect.gen(function* () {
      while (true) {
        const unknown = (yield* fanOut).filter(({ missing }) => missing !== null)
        if (unknown.length === 0) break
        yield* holds.know(
          unknown.map(({ missing }) => missing ?? ""),
          unknown[0]?.now_millis ?? 0
        )
      }
      yield* sql`INSERT INTO messages (id, user_id, project_id, app, message, body_bytes, body_format, priority, attachments,
          recipients, queued_for_digest, link_hash)
        SELECT ${id}, p.user_id, p.id, 'app', 'text', 0, 'auto', ${isHigh ? "high" : "normal"}, 0, 0, 1, ${randomBytes(32)}
        FROM projects p WHERE p.id = ${project}`
    })
  )
  return id
})

/** Messages that are held for a subscriber, and due later, were due so many seconds ago. */
export const makeDue = (subscriber: string, secondsAgo = 1) =>
  Effect.flatMap(
    SqlClient,
    (
      sql
    ) => sql`UPDATE deliveries SET held_until = (SELECT date_trunc('second', jobs_now())) - ${secondsAgo} * interval '1 second'
      WHERE subscriber_id = ${subscriber} AND held_until > jobs_now()`
  )
