import { Clock, Context, Effect, Layer, Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { NewUser, User, UserChange } from "#schemas/accounts/User.ts"
import type { Page } from "#schemas/core/Page.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { UserDirectory, type UserRow } from "./UserDirectory.ts"
import { UsersRepository, type UserWritten } from "./UsersRepository.ts"

export class UserNotFound extends Schema.TaggedError<UserNotFound>()("UserNotFound", { id: Schema.String }) {}
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
    readonly find: (id: string) => Effect.Effect<UserRow, UserNotFound>
    readonly list: (
      page: Page
    ) => Effect.Effect<{ readonly users: ReadonlyArray<UserRow>; readonly total: number }, SqlError>
    readonly create: (user: NewUser) => Effect.Effect<UserRow, EmailTaken | SqlError>
    readonly update: (
      id: string,
      change: UserChange
    ) => Effect.Effect<UserRow, UserNotFound | EmailTaken | LastAdministrator | SqlError>
    /** their keys and sites go with them */
    readonly remove: (id: string) => Effect.Effect<void, UserNotFound | LastAdministrator | SqlError>
  }
>()("signalbox/accounts/Users") {
  static readonly layerNoDeps = Layer.effect(
    Users,
    Effect.gen(function* () {
      return make(yield* UserDirectory, yield* UsersRepository)
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(UsersRepository.layer))
}

export const userResource = (row: UserRow): User => ({
  id: row.id,
  email: row.email,
  name: row.name,
  role: row.role,
  emailVerified: row.emailVerified?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})

const emailTaken = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.mapError(self, (error) =>
    isSqlError(error) && error.reason._tag === "UniqueViolation" ? new EmailTaken() : error
  )

const make = (
  directory: UserDirectory["Service"],
  repository: UsersRepository["Service"]
): Users["Service"] => {
  const written = <E>(id: string, write: Effect.Effect<UserWritten, E>) =>
    Effect.flatMap(write, (row): Effect.Effect<UserRow, UserNotFound | LastAdministrator> => {
      if (row === undefined) return Effect.fail(new UserNotFound({ id }))
      if (typeof row === "string") {
        return Effect.fail(new LastAdministrator({ hasOthers: row === "last-admin-key" }))
      }
      directory.applyLocal(row)
      return Effect.succeed(row)
    })

  return {
    find: (id) => {
      const user = directory.get(id)
      return user === undefined ? Effect.fail(new UserNotFound({ id })) : Effect.succeed(user)
    },
    list: repository.list,
    create: Effect.fn("Users.create")(function* ({ email, name, role }) {
      const row = yield* emailTaken(
        repository.insert({ id: newId("usr"), email, name, role: role ?? "user" })
      )
      directory.applyLocal(row)
      return row
    }),
    update: Effect.fn("Users.update")(function* (id, { emailVerified, ...change }) {
      const now = new Date(yield* Clock.currentTimeMillis)
      const verified = emailVerified === undefined ? {} : { email_verified: emailVerified ? now : null }
      return yield* written(id, emailTaken(repository.update(id, { ...change, ...verified })))
    }),
    remove: Effect.fn("Users.remove")(function* (id) {
      yield* written(id, repository.markDeleted(id))
    })
  }
}
