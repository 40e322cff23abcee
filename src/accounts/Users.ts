import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type NewUser, type UserChange, UserRow } from "#schemas/accounts/User.ts"
import type { Page } from "#schemas/core/Page.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import type { RowNotFound } from "#src/infra/postgres/Table.ts"
import { openersWithout } from "./Administrators.ts"

/** All users in memory, so that a key's owner and role are known without Postgres. */
export class UserDirectory extends Context.Service<UserDirectory, CachedTable.CachedTable<typeof UserRow>>()(
  "signalbox/accounts/UserDirectory"
) {
  static readonly layer = Layer.effect(
    UserDirectory,
    CachedTable.make({ name: "users", model: UserRow, ids: "usr", indexes: {}, gone: "deleted_at" })
  )
}

export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", {}) {}
/** Without an administrator who has a key, no other could be made. */
export class LastAdministrator extends Schema.TaggedError<LastAdministrator>()("LastAdministrator", {
  /** there are others, and none of them has a key */
  hasOthers: Schema.Boolean
}) {}

export class Users extends Context.Service<
  Users,
  {
    /** from memory */
    readonly find: (id: string) => Effect.Effect<UserRow, RowNotFound>
    readonly list: (
      page: Page
    ) => Effect.Effect<{ readonly rows: ReadonlyArray<UserRow>; readonly total: number }, SqlError>
    readonly create: (user: NewUser) => Effect.Effect<UserRow, EmailTaken | SqlError>
    readonly update: (
      id: string,
      change: UserChange
    ) => Effect.Effect<UserRow, RowNotFound | EmailTaken | LastAdministrator | SqlError>
    /** their keys and sites go with them */
    readonly remove: (id: string) => Effect.Effect<UserRow, RowNotFound | LastAdministrator | SqlError>
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
    isSqlError(error) && error.reason._tag === "UniqueViolation" ? new EmailTaken() : error
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
        return yield* new LastAdministrator({ hasOthers: row.others > 0 })
    })

  return {
    find: (id) => directory.find(id, undefined),
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
          yield* sql`UPDATE sites SET deleted_at = now() WHERE user_id = ${id} AND deleted_at IS NULL`
        })
      )
  }
}
