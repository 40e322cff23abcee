import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type NewUser, type UserChange, UserRow } from "#schemas/accounts/User.ts"
import { covers } from "#schemas/core/Credential.ts"
import type { Page } from "#schemas/core/Page.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import { Conflict, Forbidden, NotFound } from "#schemas/core/Problem.ts"
import { openersWithout } from "./Administrators.ts"

/** All users in memory, so that a key's owner and role are known without Postgres. */
export class UserDirectory extends Context.Service<UserDirectory, CachedTable.CachedTable<typeof UserRow>>()(
  "signalbox/accounts/UserDirectory"
) {
  static readonly layer = Layer.effect(
    UserDirectory,
    CachedTable.make({
      name: "users",
      title: "User",
      model: UserRow,
      ids: "usr",
      computed: { storage_quota_bytes: "storage_quota_bytes::float8" },
      indexes: {},
      gone: "deleted_at"
    })
  )
}

/** Router keys, and account keys of some scopes, go into apps: an administrator's gets no more there than any other. */
export const administers = ({ role, scopes }: Principal): boolean =>
  role === "admin" && covers(scopes, "full")

/** Administrators reach the rows of all users. */
export const reachOf = (key: Principal): string | undefined => (administers(key) ? undefined : key.ownerId)

export class Users extends Context.Service<
  Users,
  {
    /** from memory */
    readonly find: (id: string) => Effect.Effect<UserRow, NotFound>
    /** the user that `user_id` names */
    readonly named: (userId: string) => Effect.Effect<UserRow, NotFound>
    /** the user that a request means: the caller, or for an administrator's account key any; `deed`: what others may not */
    readonly meant: (
      caller: Principal,
      userId: string | undefined,
      deed: string
    ) => Effect.Effect<string, Forbidden | NotFound>
    readonly list: (
      page: Page
    ) => Effect.Effect<{ readonly rows: ReadonlyArray<UserRow>; readonly total: number }, SqlError>
    readonly create: (user: NewUser) => Effect.Effect<UserRow, Conflict | SqlError>
    readonly update: (
      id: string,
      change: UserChange
    ) => Effect.Effect<UserRow, NotFound | Conflict | SqlError>
    /** their keys, sessions and sites go with them */
    readonly remove: (id: string) => Effect.Effect<UserRow, NotFound | Conflict | SqlError>
  }
>()("signalbox/accounts/Users") {
  static readonly layer = Layer.effect(
    Users,
    Effect.gen(function* () {
      return make(yield* UserDirectory, yield* SqlClient)
    })
  )
}

const emailTaken = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.mapError(self, (error) =>
    isSqlError(error) && error.reason._tag === "UniqueViolation" ? Conflict.of("email: already taken") : error
  )

const make = (directory: UserDirectory["Service"], sql: SqlClient): Users["Service"] => {
  /** Fails where this one is an administrator, and no other has a key that works. */
  const spared = (id: string) =>
    Effect.gen(function* () {
      const { others: keys } = yield* openersWithout(sql, id)
      const [row] = yield* sql<{ others: number; role: string }>`
        SELECT role, (SELECT count(*)::int FROM users WHERE role = 'admin' AND deleted_at IS NULL AND id <> ${id})
          AS others FROM users WHERE id = ${id} AND deleted_at IS NULL`
      if (row?.role === "admin" && keys === 0)
        return yield* Conflict.of(`The last administrator${row.others > 0 ? " with a key" : ""} stays one`)
    })

  const named: Users["Service"]["named"] = (userId) =>
    Effect.mapError(directory.find(userId, undefined), () =>
      NotFound.of("user_id: no such user", { code: "user_not_found", param: "user_id" })
    )

  return {
    find: (id) => directory.find(id, undefined),
    named,
    meant: Effect.fnUntraced(function* (caller, userId, deed) {
      if (userId === undefined || userId === caller.ownerId) return caller.ownerId
      if (!administers(caller)) {
        return yield* Forbidden.of(`user_id: only administrators ${deed}`)
      }
      yield* named(userId)
      return userId
    }),
    list: (page) => directory.page(directory.live, "created_at, id", page),
    create: ({ email, name, role = "user" }) => emailTaken(directory.insert({ email, name, role })),
    update: Effect.fn("Users.update")(function* (id, { emailVerified, ...change }) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const verified = emailVerified === undefined ? {} : { emailVerified: emailVerified ? now : null }
      const before = change.role === "user" ? spared(id) : undefined
      return yield* emailTaken(directory.update(id, undefined, { ...change, ...verified }, before))
    }),
    remove: (id) =>
      directory.remove(
        id,
        undefined,
        Effect.gen(function* () {
          yield* spared(id)
          yield* sql`UPDATE keys SET revoked_at = now() WHERE user_id = ${id} AND revoked_at IS NULL`
          yield* sql`UPDATE web_sessions SET ended_at = now() WHERE user_id = ${id} AND ended_at IS NULL`
          yield* sql`DELETE FROM login_links WHERE user_id = ${id}`
          yield* sql`UPDATE sites SET deleted_at = now() WHERE user_id = ${id} AND deleted_at IS NULL`
        })
      )
  }
}
