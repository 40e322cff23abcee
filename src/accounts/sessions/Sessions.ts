import { Clock, Context, Effect, Layer, Schema } from "effect"
import { Model } from "effect/schema"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newSecret } from "#src/infra/crypto/Tokens.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import * as Sweep from "#src/infra/postgres/Sweep.ts"

const written = Model.Field({ select: Schema.Date, insert: Schema.Date })

/** A row of `web_sessions`. Instants are of the clocks of the servers. */
export class SessionRow extends Model.Class<SessionRow>("SessionRow")({
  id: Model.Field({ select: Schema.String }),
  user_id: Model.Field({ select: Schema.String }),
  /** the key that it was opened with, and ends with; null: a login link */
  key_id: Model.Field({ select: Schema.NullOr(Schema.String), insert: Schema.NullOr(Schema.String) }),
  created_at: written,
  used_at: Model.Field({ select: Schema.Date, insert: Schema.Date, update: Schema.Date }),
  ends_at: written,
  /** SHA-256 of the cookie: lower-case hexadecimal in memory */
  hash: Model.Field({ select: Schema.String, insert: Schema.Uint8Array })
}) {}

/** The prefix of ids of sessions. */
export const sessionIds = "web"

/** All sessions that have not ended, in memory: a request asks nobody. An end holds everywhere within a second. */
export class SessionDirectory extends Context.Service<
  SessionDirectory,
  CachedTable.CachedTable<typeof SessionRow, "hash">
>()("signalbox/accounts/SessionDirectory") {
  static readonly layer = Layer.effect(
    SessionDirectory,
    CachedTable.make({
      name: "web_sessions",
      title: "Session",
      model: SessionRow,
      ids: sessionIds,
      computed: { hash: "encode(hash, 'hex')" },
      indexes: { hash: (session) => session.hash },
      gone: "ended_at"
    })
  )
}

export interface OpenedSession {
  readonly row: SessionRow
  /** the value of the cookie */
  readonly secret: string
}

interface Ticket {
  readonly ticket: string
  readonly endsAt: Date
}

/** Opens and ends sessions, and makes the links that open one. Source: contract/sessions. */
export class Sessions extends Context.Service<
  Sessions,
  {
    /** for the owner of a key that is good, who exists */
    readonly openByKey: (owner: string, keyId: string) => Effect.Effect<OpenedSession, SqlError>
    /** undefined: the ticket was used, has expired, or never was one */
    readonly openByTicket: (ticket: string) => Effect.Effect<OpenedSession | undefined, SqlError>
    /** one that has ended already is fine */
    readonly end: (id: string) => Effect.Effect<void, SqlError>
    readonly endAllOf: (userId: string) => Effect.Effect<void, SqlError>
    /** for a user who exists */
    readonly makeTicket: (userId: string) => Effect.Effect<Ticket, SqlError>
    /** Ends sessions that are over, deletes their rows a day later, and links that are over. */
    readonly sweep: Effect.Effect<void, SqlError, SqlClient | AppConfig>
  }
>()("signalbox/accounts/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      return make(yield* SessionDirectory, yield* SqlClient, (yield* AppConfig).limits)
    })
  )
}

type Limits = (typeof AppConfig)["Service"]["limits"]

const later = (millis: number) => Effect.map(Clock.currentTimeMillis, (now) => new Date(now + millis))

const make = (
  directory: SessionDirectory["Service"],
  sql: SqlClient,
  limits: Limits
): Sessions["Service"] => {
  /** The next one that is made for the user waits here. */
  const lockUser = (id: string) => sql`SELECT id FROM users WHERE id = ${id} FOR NO KEY UPDATE`

  const open = Effect.fn("Sessions.open")(function* (owner: string, keyId: string | null) {
    yield* lockUser(owner)
    // A person who is refused could not sign out the forgotten ones either: the oldest goes.
    yield* sql`UPDATE web_sessions SET ended_at = now() WHERE id IN (SELECT id FROM web_sessions
      WHERE user_id = ${owner} AND ended_at IS NULL ORDER BY used_at DESC, id OFFSET ${limits.sessionsPerUser - 1})`
    const secret = newSecret("ssc_")
    const now = yield* later(0)
    const row = yield* directory.insert(
      {
        key_id: keyId,
        created_at: now,
        used_at: now,
        ends_at: yield* later(limits.sessionMillis),
        hash: hashOf(secret)
      },
      { user_id: owner }
    )
    return { row, secret }
  })

  const openByTicket = Effect.fn("Sessions.openByTicket")(function* (ticket: string) {
    const [link] = yield* sql<{ user_id: string }>`DELETE FROM login_links l USING users u
      WHERE l.hash = ${hashOf(ticket)} AND l.ends_at > ${yield* later(0)}
        AND u.id = l.user_id AND u.deleted_at IS NULL RETURNING l.user_id`
    return link === undefined ? undefined : yield* open(link.user_id, null)
  })

  return {
    openByKey: (owner, keyId) => sql.withTransaction(open(owner, keyId)),
    openByTicket: (ticket) => sql.withTransaction(openByTicket(ticket)),
    end: (id) =>
      Effect.catchTag(Effect.asVoid(directory.remove(id, undefined)), "NotFound", () => Effect.void),
    endAllOf: Effect.fn("Sessions.endAllOf")(function* (userId) {
      yield* sql`UPDATE web_sessions SET ended_at = now() WHERE user_id = ${userId} AND ended_at IS NULL`
      yield* Effect.catchTag(directory.refreshNow, "CacheFailed", Effect.die)
    }),
    makeTicket: Effect.fn("Sessions.makeTicket")(function* (userId: string) {
      yield* lockUser(userId)
      yield* sql`DELETE FROM login_links WHERE hash IN (SELECT hash FROM login_links
        WHERE user_id = ${userId} ORDER BY ends_at DESC OFFSET ${limits.loginLinksPerUser - 1})`
      const ticket = newSecret("slt_")
      const endsAt = yield* later(limits.loginLinkMillis)
      yield* sql`INSERT INTO login_links ${sql.insert({ hash: hashOf(ticket), user_id: userId, ends_at: endsAt })}`
      return { ticket, endsAt }
    }, sql.withTransaction),
    sweep: Effect.gen(function* () {
      const now = yield* later(0)
      const idle = yield* later(-limits.sessionIdleMillis)
      yield* sql`UPDATE web_sessions SET ended_at = now()
        WHERE ended_at IS NULL AND (ends_at <= ${now} OR used_at <= ${idle})`
      yield* sql`DELETE FROM login_links WHERE ends_at <= ${now}`
      yield* Sweep.sweep("web_sessions", "ended_at")
    })
  }
}

export const sweeping = Sweeps.layer({
  name: "sessions",
  every: "sweepEveryMillis",
  run: Effect.flatMap(Sessions, ({ sweep }) => sweep)
})
