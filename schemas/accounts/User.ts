import { Schema } from "effect"
import { UserId } from "../core/Ids.ts"
import { Email, line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

export const Role = Schema.Literals(["user", "admin"])
export type Role = typeof Role.Type

export const UserName = line(1, 200)

/** Source: contract/accounts#users. */
export const User = Schema.Struct({
  id: UserId,
  email: Schema.String,
  name: Schema.String,
  role: Role,
  emailVerified: Schema.NullOr(Timestamp),
  createdAt: Timestamp
}).annotate({ identifier: "User", description: "A user" })
export type User = typeof User.Type

/** The body of `POST /users`, which echoes it, and of `POST /admin/users`, which creates the user. */
export const NewUser = Schema.Struct({
  email: Email,
  name: UserName,
  role: Schema.optionalKey(Role.annotate({ default: "user" }))
}).annotate({ identifier: "NewUser" })
export type NewUser = typeof NewUser.Type

export const UserChange = Schema.Struct({
  email: Schema.optionalKey(Email),
  name: Schema.optionalKey(UserName),
  role: Schema.optionalKey(Role),
  emailVerified: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "true: verified as of now; false: not verified" })
  )
}).annotate({ identifier: "UserChange" })
export type UserChange = typeof UserChange.Type
