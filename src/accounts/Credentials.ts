import { Clock, Context, Effect, Layer, type Scope, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { KeyRow } from "#schemas/accounts/ApiKey.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { AppConfig } from "#src/Config.ts"
import { hashOf, hexHashOf } from "#src/infra/crypto/Tokens.ts"
import { Secrets } from "#src/infra/secrets/Secrets.ts"
import { KeyDirectory } from "./Keys.ts"
import { SessionDirectory, sessionIds, type SessionRow } from "./sessions/Sessions.ts"
import { isToken, SessionTokens } from "./sessions/SessionTokens.ts"
import { SessionUses } from "./sessions/SessionUses.ts"
import { UserDirectory } from "./Users.ts"

/** Keys of another room, by the form of their secrets: theirs alone. Answers are as those of `Credentials`. */
export interface CredentialSource {
  readonly form: RegExp
  readonly authenticate: (secret: string) => Effect.Effect<Principal | undefined, SqlError>
  readonly recall: (secret: string) => Principal | "unknown" | undefined
  readonly holder: (id: string) => Principal | undefined
}

/** Finds the holder of a key, a session's token or its cookie: who may do what, whatever was shown. */
export class Credentials extends Context.Service<
  Credentials,
  {
    /** of a key or a token; undefined: none (unknown, forged, expired, revoked, its owner deleted) */
    readonly authenticate: (secret: string) => Effect.Effect<Principal | undefined, SqlError>
    /** likewise, of the cookie of a session */
    readonly authenticateCookie: (cookie: string) => Effect.Effect<Principal | undefined, SqlError>
    /** As `authenticate`, from memory alone: "unknown" is a secret that only Postgres could know. */
    readonly recall: (secret: string) => Principal | "unknown" | undefined
    /** The holder of a key or session, by its id and from memory; undefined once it has ended. */
    readonly holder: (id: string) => Principal | undefined
    /** A room's keys are known as long as the room is served. */
    readonly add: (source: CredentialSource) => Effect.Effect<void, never, Scope.Scope>
    /** A token of a session, for `millis` or as long as the session lasts. */
    readonly tokenOf: (
      session: Principal,
      millis: number
    ) => Effect.Effect<{ readonly token: string; readonly expiresAt: Date }>
  }
>()("signalbox/accounts/Credentials") {
  static readonly layer = Layer.effect(
    Credentials,
    Effect.gen(function* () {
      const known = yield* makeKnown
      const tokens = new SessionTokens(yield* (yield* Secrets).of("session-tokens"))
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const look = yield* lookingUp(known)
      const { keys, sessions } = known
      const sources = new Sources()
      const sessionOf = (token: string) => {
        const id = tokens.read(token, now())
        return id === undefined ? undefined : `${sessionIds}_${id}`
      }
      return Credentials.of({
        authenticate: (secret) => {
          if (isToken(secret)) {
            const id = sessionOf(secret)
            return id === undefined ? nothing : look.session(() => sessions.get(id), "id", id)
          }
          return keyForm.test(secret)
            ? look.key(hashOf(secret))
            : (sources.of(secret)?.authenticate(secret) ?? nothing)
        },
        authenticateCookie: (cookie) => {
          if (!cookieForm.test(cookie)) return nothing
          const hash = hashOf(cookie)
          return look.session(() => sessions.by("hash", hash.toString("hex")), "hash", hash)
        },
        recall: (secret) => {
          if (isToken(secret)) {
            const id = sessionOf(secret)
            return id === undefined ? undefined : known.recall(sessions.get(id))
          }
          return keyForm.test(secret)
            ? known.recall(keys.by("hash", hexHashOf(secret)))
            : sources.of(secret)?.recall(secret)
        },
        holder: (id) => {
          const row = keys.get(id) ?? sessions.get(id)
          if (row === undefined) return sources.holder(id)
          const found = known.recall(row)
          return found === "unknown" ? undefined : found
        },
        add: (source) => sources.add(source),
        tokenOf: (session, millis) =>
          Effect.sync(() => {
            const endsAt = Math.min(now() + millis, session.expiresAt?.getTime() ?? Infinity)
            // A token ends with a whole second.
            const expiresAt = new Date(Math.floor(endsAt / 1000) * 1000)
            return { token: tokens.make(session.id, expiresAt), expiresAt }
          })
      })
    })
  )
}

/** The sources that rooms have added. */
class Sources {
  readonly #all = new Set<CredentialSource>()

  add(source: CredentialSource): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void this.#all.add(source)),
      () => Effect.sync(() => this.#all.delete(source))
    )
  }

  of(secret: string): CredentialSource | undefined {
    for (const source of this.#all) if (source.form.test(secret)) return source
    return undefined
  }

  holder(id: string): Principal | undefined {
    for (const source of this.#all) {
      const holder = source.holder(id)
      if (holder !== undefined) return holder
    }
    return undefined
  }
}

const keyForm = /^sk_(mr_)?[0-9A-Za-z]{40}$/
const cookieForm = /^ssc_[0-9A-Za-z]{40}$/

const nothing = Effect.succeed(undefined)

/** Look-ups under way at once for secrets that memory does not know: guesses must not take Postgres's connections. */
const lookupsAtOnce = 2

type Row = KeyRow | SessionRow

const isSession = (row: Row): row is SessionRow => "used_at" in row

/** Keys, sessions and users, as memory has them. */
interface Known {
  readonly keys: KeyDirectory["Service"]
  readonly sessions: SessionDirectory["Service"]
  readonly users: UserDirectory["Service"]
  /** "unknown": the row, its owner or the session's key is not in memory */
  readonly recall: (row: Row | undefined) => Principal | "unknown" | undefined
}

const makeKnown = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const keys = yield* KeyDirectory
  const sessions = yield* SessionDirectory
  const users = yield* UserDirectory
  const clock = yield* Clock.Clock
  const hasEnded = (expiresAt: Date | null) =>
    expiresAt !== null && expiresAt.getTime() <= clock.currentTimeMillisUnsafe()
  const kept = new WeakMap<KeyRow, Principal>()
  /** One for all requests with a key: tens of thousands of sockets hold theirs. */
  const keptOf = (row: KeyRow, role: Principal["role"]): Principal => {
    const known = kept.get(row)
    if (known?.role === role) return known
    const principal = principalOfKey(row, role)
    kept.set(row, principal)
    return principal
  }
  const recall: Known["recall"] = (row) => {
    const user = row === undefined ? undefined : users.get(row.user_id)
    if (row === undefined || user === undefined) return "unknown"
    if (!isSession(row)) return hasEnded(row.expires_at) ? undefined : keptOf(row, user.role)
    const idleAt = new Date(row.used_at.getTime() + limits.sessionIdleMillis)
    if (hasEnded(row.ends_at) || hasEnded(idleAt)) return undefined
    const key = row.key_id === null ? null : (keys.get(row.key_id) ?? "unknown")
    if (key === "unknown") return key
    return key !== null && hasEnded(key.expires_at) ? undefined : principalOfSession(row, key, user.role)
  }
  return { keys, sessions, users, recall } satisfies Known
})

/** Looks in memory, and in Postgres for what another process has made a moment ago. */
const lookingUp = Effect.fnUntraced(function* ({ keys, recall, sessions, users }: Known) {
  const sql = yield* SqlClient
  const uses = yield* SessionUses
  const lookups = yield* Semaphore.make(lookupsAtOnce)
  const ask = lookups.withPermits(1)
  /** Memory is brought up to date before a credential is refused that has no owner there. */
  const learnOwner = (id: string) =>
    users.get(id) === undefined ? Effect.catchTag(users.refreshNow, "CacheFailed", Effect.die) : Effect.void
  const learnKey = (id: string | null) =>
    id === null || keys.get(id) !== undefined
      ? Effect.void
      : ask(keys.first(sql`SELECT ${keys.columns} FROM keys WHERE id = ${id} AND ${keys.live}`))
  const found = Effect.fnUntraced(function* (row: Row | undefined) {
    if (row === undefined) return undefined
    let holder = recall(row)
    if (holder === "unknown") {
      yield* learnOwner(row.user_id)
      if (isSession(row)) yield* learnKey(row.key_id)
      holder = recall(row)
    }
    return holder === "unknown" ? undefined : holder
  })
  return {
    // The hash is the key of a map: no comparison takes longer the more of a secret is right.
    key: (hash: Buffer): Effect.Effect<Principal | undefined, SqlError> => {
      const known = keys.by("hash", hash.toString("hex"))
      const holder = recall(known)
      if (holder !== "unknown") return Effect.succeed(holder)
      const asked = keys.first(sql`SELECT ${keys.columns} FROM keys WHERE hash = ${hash} AND ${keys.live}`)
      return Effect.flatMap(known === undefined ? ask(asked) : Effect.succeed(known), found)
    },
    session: Effect.fnUntraced(function* (
      known: () => SessionRow | undefined,
      column: "id" | "hash",
      value: string | Buffer
    ) {
      const asked = ask(
        sessions.first(
          sql`SELECT ${sessions.columns} FROM web_sessions WHERE ${sql(column)} = ${value} AND ${sessions.live}`
        )
      )
      const row = known() ?? (yield* asked)
      const holder = yield* found(row)
      if (row !== undefined && holder !== undefined) yield* uses.note(row)
      return holder
    })
  }
})

const principalOfKey = (key: KeyRow, role: Principal["role"]): Principal => ({
  kind: key.kind,
  id: key.id,
  ownerId: key.user_id,
  scopes: key.scopes,
  expiresAt: key.expires_at,
  keyId: key.id,
  keyName: key.name,
  role,
  models: key.models,
  collections: key.collections,
  rateLimitPerMinute: key.rate_limit_per_minute
})

/** A session has the scopes of its key and ends with it; a login link, as its user, opens everything. */
const principalOfSession = (session: SessionRow, key: KeyRow | null, role: Principal["role"]): Principal => ({
  kind: "session",
  id: session.id,
  ownerId: session.user_id,
  scopes: key?.scopes ?? ["full"],
  expiresAt: new Date(
    Math.min(session.ends_at.getTime(), key?.expires_at?.getTime() ?? Number.POSITIVE_INFINITY)
  ),
  keyId: key?.id ?? session.id,
  keyName: key?.name ?? "login link",
  role,
  models: null,
  collections: null,
  rateLimitPerMinute: null
})
