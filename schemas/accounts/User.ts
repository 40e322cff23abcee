import { Schema } from "effect"
import { Model } from "effect/schema"
import { UserId } from "../core/Ids.ts"
import { given, made, madeAt, maybeGiven, shape } from "../core/Noun.ts"
import { Email, integer, line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"

export const Role = Schema.Literals(["user", "admin"])
export type Role = typeof Role.Type

const verified = Schema.NullOr(Schema.Date)

/** A row of `users`. Source: contract/accounts#users. */
export class UserRow extends Model.Class<UserRow>("UserRow")({
  id: made(UserId),
  email: given(Schema.String, Email),
  name: given(Schema.String, line(1, 200)),
  role: maybeGiven(Role, Role, { default: "user" }),
  emailVerified: Model.Field({
    select: verified,
    update: verified,
    json: Schema.NullOr(TimestampOfDate),
    jsonUpdate: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "true: verified as of now; false: not verified" })
    )
  }),
  createdAt: madeAt,
  /** bytes of files that the user may have; null: as many as `FILES_QUOTA` gives everyone */
  storage_quota_bytes: Model.Field({
    select: Schema.NullOr(Schema.Finite),
    update: Schema.NullOr(Schema.Finite),
    jsonUpdate: Schema.optionalKey(
      Schema.NullOr(
        integer(0, Number.MAX_SAFE_INTEGER).annotate({
          description: "Bytes of files that the user may have; null: as many as the server gives everyone"
        })
      )
    )
  })
}) {}

export const User = shape("User", UserRow.json, "A user")

export const ManagedUser = Schema.Struct({
  ...UserRow.json.fields,
  storage_quota_bytes: Schema.optionalKey(
    Schema.Finite.annotate({
      description: "Bytes of files that the user may have; absent: as many as the server gives everyone"
    })
  )
}).annotate({ identifier: "ManagedUser", description: "A user, as administrators see them" })

/** The body of `POST /users`, which echoes it, and of `POST /admin/users`, which creates the user. */
export const NewUser = shape("NewUser", UserRow.jsonCreate)
export type NewUser = typeof NewUser.Type

export const UserChange = shape("UserChange", UserRow.jsonUpdate)
export type UserChange = typeof UserChange.Type
