import { Context, Layer, Schema } from "effect"
import * as Mirror from "#src/infra/postgres/Mirror.ts"

/** A row of `users`. */
export interface UserRow {
  readonly id: string
  readonly email: string
  readonly name: string
  readonly role: "user" | "admin"
  readonly emailVerified: Date | null
  readonly createdAt: Date
  readonly deletedAt: Date | null
}

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({
    id: Schema.String,
    email: Schema.String,
    name: Schema.String,
    role: Schema.Literals(["user", "admin"]),
    email_verified: Schema.NullOr(Schema.Date),
    created_at: Schema.Date,
    deleted_at: Schema.NullOr(Schema.Date)
  })
)

/** A user from a row as Postgres gives it. Throws where the row is not one of `users`. */
export const userOfRow = (row: Readonly<Record<string, unknown>>): UserRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    email: columns.email,
    name: columns.name,
    role: columns.role,
    emailVerified: columns.email_verified,
    createdAt: columns.created_at,
    deletedAt: columns.deleted_at
  }
}

/** All users in memory, so that a key's owner and role are known without Postgres. */
export class UserDirectory extends Context.Service<UserDirectory, Mirror.Mirror<UserRow, never>>()(
  "signalbox/accounts/UserDirectory"
) {
  static readonly layer = Layer.effect(
    UserDirectory,
    Mirror.make({ table: "users", decode: userOfRow, indexes: {}, isGone: (user) => user.deletedAt !== null })
  )
}
