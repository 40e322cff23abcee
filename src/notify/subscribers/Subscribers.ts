import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { BadRequest, NotFound, Unauthorized } from "#schemas/core/Problem.ts"
import type { Page } from "#schemas/core/Page.ts"
import type { ProjectChoice, Settings, SettingsChange } from "#schemas/notify/Settings.ts"
import type { SubscriberList } from "#schemas/notify/Subscriber.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { VapidKey } from "../delivery/VapidKey.ts"
import { Holds } from "../digests/Holds.ts"
import { Channels } from "./Channels.ts"
import { changed, type DeliveryColumns, shown } from "./DeliverySettings.ts"
import { makeDropWaiting } from "./DropWaiting.ts"
import { newToken } from "./SubscriberTokens.ts"

type SubscribedProject = Settings["projects"][number]
type ShownSubscriber = SubscriberList["subscribers"][number]

/** Settings of subscribers, each by the id that their token led to. Source: contract/notify#subscribers. */
export class Subscribers extends Context.Service<
  Subscribers,
  {
    readonly read: (id: string) => Effect.Effect<Settings, Unauthorized | SqlError>
    readonly update: (
      id: string,
      change: SettingsChange
    ) => Effect.Effect<Settings, BadRequest | Unauthorized | SqlError>
    /** Addresses are deleted at once, and what waits is not sent. */
    readonly leave: (id: string) => Effect.Effect<void, SqlError>
    /** a token in place of the one that there was */
    readonly renew: (id: string) => Effect.Effect<string, Unauthorized | SqlError>
    readonly choose: (
      id: string,
      projectId: string,
      choice: ProjectChoice
    ) => Effect.Effect<SubscribedProject, NotFound | SqlError>
    /** false: they have not subscribed to it */
    readonly leaveProject: (id: string, projectId: string) => Effect.Effect<boolean, SqlError>
    /** as its owner sees them: names, kinds and states, no addresses; the latest first */
    readonly ofProject: (
      projectId: string,
      page: Page
    ) => Effect.Effect<ReadonlyArray<ShownSubscriber>, SqlError>
  }
>()("signalbox/notify/Subscribers") {
  static readonly layer = Layer.effect(
    Subscribers,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const channels = yield* Channels
      const { publicKey } = yield* VapidKey
      const dropWaiting = yield* makeDropWaiting
      const holds = yield* Holds
      const parts = { sql, channels, dropWaiting, holds, pushKey: publicKey }
      return Subscribers.of({ ...ofThemselves(parts), ...ofProjects(parts) })
    })
  )
}

interface Row extends DeliveryColumns {
  readonly id: string
  readonly name: string
  readonly created_at: Date
  readonly now_millis: number
  /** messages that wait for a digest, and when the first of them comes */
  readonly held: number
  readonly held_until: Date | null
}

interface ProjectRow extends Omit<SubscribedProject, "joinedAt"> {
  readonly joined_at: Date
}

const shownProject = ({ joined_at, ...row }: ProjectRow): SubscribedProject => ({
  ...row,
  joinedAt: joined_at
})

/** `more`: which of the subscriber's projects. */
const projectsOf = (sql: SqlClient, id: string, more = sql``) =>
  Effect.map(
    sql<ProjectRow>`SELECT p.id, p.name, p.description, s.delivery, s.created_at AS joined_at
      FROM project_subscriptions s JOIN projects p ON p.id = s.project_id
      WHERE s.subscriber_id = ${id} AND p.deleted_at IS NULL ${more} ORDER BY p.name, p.id`,
    (rows) => rows.map(shownProject)
  )

const own = (sql: SqlClient, id: string) => sql<Row>`
  SELECT s.id, s.name, s.timezone, s.delivery, s.digest_at, s.quiet_from, s.quiet_to, s.high_passes, s.created_at,
    extract(epoch FROM jobs_now())::double precision * 1000 AS now_millis, h.held, h.held_until
  FROM subscribers s, LATERAL (SELECT count(DISTINCT d.message_id)::int AS held, min(d.held_until) AS held_until
    FROM deliveries d WHERE d.subscriber_id = s.id AND d.held_until IS NOT NULL AND d.dropped_at IS NULL) h
  WHERE s.id = ${id}`

const columns = (sql: SqlClient, id: string) =>
  Effect.flatMap(
    sql<DeliveryColumns>`SELECT timezone, delivery, digest_at, quiet_from, quiet_to, high_passes
      FROM subscribers WHERE id = ${id}`,
    ([row]) => (row === undefined ? Effect.fail(invalidKey()) : Effect.succeed(row))
  )

interface Parts {
  readonly sql: SqlClient
  readonly channels: Channels["Service"]
  readonly dropWaiting: Effect.Success<typeof makeDropWaiting>
  readonly holds: Holds["Service"]
  readonly pushKey: string
}

const ofThemselves = ({ channels, dropWaiting, holds, pushKey, sql }: Parts) => {
  const read: Subscribers["Service"]["read"] = Effect.fnUntraced(function* (id) {
    const [row] = yield* own(sql, id)
    // The token was replaced, or its subscriber left, while the request was on its way.
    if (row === undefined) return yield* invalidKey()
    const { created_at: createdAt, held, held_until: heldUntil, name, now_millis: nowMillis } = row
    const projects = yield* projectsOf(sql, id)
    const choices = projects.map(({ delivery }) => delivery)
    const times = shown(row, { choices, held, heldUntil, nowMillis })
    const rest = { projects, channels: yield* channels.list(id), pushKey, createdAt }
    return { id, name, timezone: row.timezone, ...times, ...rest }
  })
  /** Under the lock of the subscriber: no other changes the settings meanwhile. */
  const write = Effect.fnUntraced(function* (id: string, { name, ...change }: SettingsChange) {
    const next = yield* changed(yield* columns(sql, id), change)
    yield* sql`UPDATE subscribers SET ${sql.update({ ...next, ...(name !== undefined && { name }) })} WHERE id = ${id}`
  })
  const update: Subscribers["Service"]["update"] = Effect.fn("Subscribers.update")(function* (id, change) {
    yield* holds.changing(id, write(id, change))
    return yield* read(id)
  })
  const leave: Subscribers["Service"]["leave"] = (id) =>
    sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT id FROM subscribers WHERE id = ${id} FOR UPDATE`
        const own = yield* sql<{ id: string }>`SELECT id FROM channels WHERE subscriber_id = ${id}
          ORDER BY id FOR UPDATE`
        yield* dropWaiting(own.map((channel) => channel.id))
        yield* sql`DELETE FROM subscribers WHERE id = ${id}`
      })
    )
  const renew: Subscribers["Service"]["renew"] = Effect.fnUntraced(function* (id) {
    const token = newToken()
    const [row] =
      yield* sql`UPDATE subscribers SET token_hash = ${hashOf(token)}, bot_token_hash = NULL WHERE id = ${id} RETURNING id`
    return row === undefined ? yield* invalidKey() : token
  })
  return { read, update, leave, renew }
}

const ofProjects = ({
  dropWaiting,
  holds,
  sql
}: Parts): Pick<Subscribers["Service"], "choose" | "leaveProject" | "ofProject"> => ({
  choose: Effect.fn("Subscribers.choose")(function* (id, projectId, { delivery }) {
    yield* holds.changing(
      id,
      sql`UPDATE project_subscriptions SET delivery = ${delivery}
        WHERE subscriber_id = ${id} AND project_id = ${projectId}`
    )
    const [project] = yield* projectsOf(sql, id, sql`AND p.id = ${projectId}`)
    return project ?? (yield* notFound("Project"))
  }),
  leaveProject: (id, projectId) =>
    holds.changing(
      id,
      Effect.gen(function* () {
        const gone = yield* sql`DELETE FROM project_subscriptions
          WHERE subscriber_id = ${id} AND project_id = ${projectId} RETURNING 1`
        if (gone.length === 0) return false
        const channels = yield* sql<{ id: string }>`SELECT id FROM channels WHERE subscriber_id = ${id}`
        yield* dropWaiting(
          channels.map((channel) => channel.id),
          projectId
        )
        return true
      })
    ),
  ofProject: (projectId, { limit, offset }) =>
    Effect.map(
      sql<Omit<ShownSubscriber, "joinedAt"> & { readonly joined_at: Date }>`
        SELECT s.id, s.name, p.delivery, p.created_at AS joined_at,
          coalesce((SELECT json_agg(json_build_object('id', c.id, 'kind', c.kind, 'state', c.state)
            ORDER BY c.created_at, c.id) FROM channels c WHERE c.subscriber_id = s.id), '[]') AS channels
        FROM project_subscriptions p JOIN subscribers s ON s.id = p.subscriber_id
        WHERE p.project_id = ${projectId}
        ORDER BY p.created_at DESC, s.id LIMIT ${limit} OFFSET ${offset}`,
      (rows) => rows.map(({ joined_at, ...row }) => ({ ...row, joinedAt: joined_at.toISOString() }))
    )
})
