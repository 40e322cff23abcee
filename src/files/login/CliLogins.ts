import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { covers, type Scope } from "#schemas/core/Credential.ts"
import { Conflict, Forbidden, NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { AskedLogin, NewLogin, PolledLogin } from "#schemas/files/CliLogin.ts"
import { Keys } from "#src/accounts/Keys.ts"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newId } from "#src/infra/crypto/Tokens.ts"
import { Devices } from "../devices/Devices.ts"

/** Gives command lines keys by their owners' sessions. Source: contract/files#cli-login. */
export class CliLogins extends Context.Service<
  CliLogins,
  {
    readonly begin: (
      login: NewLogin
    ) => Effect.Effect<{ readonly token: string; readonly digits: string }, ServiceUnavailable | SqlError>
    /** one that waits, as a session may see it */
    readonly read: (
      token: string,
      session: Principal
    ) => Effect.Effect<AskedLogin, NotFound | Conflict | SqlError>
    /** `scopes`: no more than the session's, which are the default */
    readonly complete: (
      token: string,
      session: Principal,
      scopes: ReadonlyArray<string> | undefined
    ) => Effect.Effect<void, NotFound | Conflict | Forbidden | SqlError>
    /** The first one after `complete` makes the key and the device. */
    readonly poll: (token: string) => Effect.Effect<PolledLogin, Conflict | SqlError>
    /** as `poll`, but makes nothing */
    readonly peek: (token: string) => Effect.Effect<"pending" | "expired", SqlError>
  }
>()("signalbox/files/CliLogins") {
  static readonly layer = Layer.effect(
    CliLogins,
    Effect.suspend(() => make)
  )
}

interface LoginRow {
  readonly name: string
  readonly platform: AskedLogin["platform"]
  readonly ends_at: Date
  readonly user_id: string | null
}

interface CompleteRow extends LoginRow {
  readonly user_id: string
  /** null: of a session that a login link opened */
  readonly key_id: string | null
  readonly scopes: ReadonlyArray<string>
}

/** Page and terminal show the same ones. Source: contract/files#cli-login. */
const digitsOf = (tokenHash: Buffer): string => String(tokenHash.readUInt32BE(0) % 10_000).padStart(4, "0")

/** 22 base62 digits of 128 random bits. */
const newToken = (): string => newId("cli").slice("cli_".length)

const unknown = () => NotFound.of("token: no login waits under it; begin again with signalbox login")
const completed = () => Conflict.of("token: this login was let in already", { code: "login_complete" })

const nowDate = Effect.map(Clock.currentTimeMillis, (now) => new Date(now))

/** The rights of a session last no longer than the key that opened it, nor do those of the key that it makes. */
const makeRightsOf = (sql: SqlClient) =>
  Effect.fnUntraced(function* ({ key_id: keyId }: CompleteRow) {
    if (keyId === null) return { rate_limit_per_minute: null, expires_at: null }
    const [key] = yield* sql<{ rate_limit_per_minute: number | null; expires_at: Date | null }>`
      SELECT rate_limit_per_minute, expires_at FROM keys WHERE id = ${keyId} AND revoked_at IS NULL
        AND (expires_at IS NULL OR expires_at > ${yield* nowDate})`
    return key === undefined ? undefined : { ...key, expires_at: key.expires_at?.toISOString() ?? null }
  })

/** Makes the key of a login that a person has let in, and the device that it belongs to. */
const makeMinting = Effect.gen(function* () {
  const sql = yield* SqlClient
  const keys = yield* Keys
  const devices = yield* Devices
  const rightsOf = makeRightsOf(sql)
  return Effect.fnUntraced(function* (login: CompleteRow) {
    const { name, platform, scopes, user_id: userId } = login
    const rights = yield* rightsOf(login)
    if (rights === undefined) return undefined
    const fields = { name, kind: "account" as const, scopes, ...rights }
    // The key that opened the session has its rate, whoever gave it.
    const { row, secret } = yield* keys.create(userId, fields, { role: "admin" })
    yield* devices.create(userId, { name, platform }, row.id)
    return secret
  })
})

/** Finds logins that are not over. */
const findingOf = (sql: SqlClient) => {
  const find = Effect.fnUntraced(function* (token: string) {
    const [row] = yield* sql<LoginRow>`SELECT name, platform, ends_at, user_id FROM cli_logins
      WHERE hash = ${hashOf(token)} AND ends_at > ${yield* nowDate}`
    return row
  })
  const peek = (token: string) =>
    Effect.map(find(token), (row) => (row === undefined ? ("expired" as const) : ("pending" as const)))

  const waiting = Effect.fnUntraced(function* (token: string) {
    const row = yield* find(token)
    if (row === undefined) return yield* unknown()
    return row.user_id === null ? row : yield* completed()
  })

  return { peek, waiting }
}

/** Fails where a user has no room for another key and device: told to the person, who can do something about it. */
const makeRoomFor = Effect.gen(function* () {
  const { devicesPerUser, keysPerUser } = (yield* AppConfig).limits
  const keys = yield* Keys
  const devices = yield* Devices
  return Effect.fnUntraced(function* (userId: string) {
    if ((yield* devices.list(userId)).length >= devicesPerUser)
      return yield* Conflict.of(`A user has at most ${devicesPerUser} devices`, { code: "too_many_devices" })
    if (keys.countOf(userId) >= keysPerUser)
      return yield* Conflict.of(`A user has at most ${keysPerUser} keys`, { code: "too_many_keys" })
  })
})

const make = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const mint = yield* makeMinting
  const roomFor = yield* makeRoomFor
  const { peek, waiting } = findingOf(sql)

  const take = Effect.fnUntraced(function* (token: string) {
    const [row] = yield* sql<CompleteRow>`DELETE FROM cli_logins l USING users u
      WHERE l.hash = ${hashOf(token)} AND l.ends_at > ${yield* nowDate}
        AND u.id = l.user_id AND u.deleted_at IS NULL RETURNING l.*`
    return row === undefined ? undefined : yield* mint(row)
  }, sql.withTransaction)

  return CliLogins.of({
    begin: Effect.fn("CliLogins.begin")(function* ({ name = "Command line", platform = "cli" }) {
      const now = yield* nowDate
      yield* sql`DELETE FROM cli_logins WHERE ends_at <= ${now}`
      const [counted] = yield* sql<{ waiting: number }>`SELECT count(*)::int AS waiting FROM cli_logins`
      if ((counted?.waiting ?? 0) >= limits.cliLoginsWaiting)
        return yield* ServiceUnavailable.of("Too many logins wait; try again in a minute")
      const token = newToken()
      const hash = hashOf(token)
      const endsAt = new Date(now.getTime() + limits.cliLoginMillis)
      yield* sql`INSERT INTO cli_logins ${sql.insert({ hash, name, platform, ends_at: endsAt })}`
      return { token, digits: digitsOf(hash) }
    }),
    read: Effect.fn("CliLogins.read")(function* (token, { scopes }) {
      const { ends_at: expiresAt, name, platform } = yield* waiting(token)
      return { name, platform, digits: digitsOf(hashOf(token)), scopes, expiresAt }
    }),
    complete: Effect.fn("CliLogins.complete")(function* (token, session, scopes = session.scopes) {
      const outside = scopes.find((scope) => !covers(session.scopes, scope as Scope))
      if (outside !== undefined)
        return yield* Forbidden.of(`scopes: this session does not have ${outside} itself`)
      yield* roomFor(session.ownerId)
      const keyId = session.keyId === session.id ? null : session.keyId
      const done = yield* sql`UPDATE cli_logins
        SET user_id = ${session.ownerId}, key_id = ${keyId}, scopes = ${scopes}
        WHERE hash = ${hashOf(token)} AND user_id IS NULL AND ends_at > ${yield* nowDate} RETURNING name`
      if (done.length === 0) return yield* Effect.asVoid(waiting(token))
    }),
    poll: Effect.fn("CliLogins.poll")(function* (token) {
      // Its key has expired since.
      const apiKey = yield* Effect.catchTag(take(token), "BadRequest", () => Effect.succeed(undefined))
      if (apiKey !== undefined) return { status: "complete" as const, apiKey }
      return { status: yield* peek(token) }
    }),
    peek
  })
})
