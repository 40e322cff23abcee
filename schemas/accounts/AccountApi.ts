import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware, OpenApi } from "effect/http-api"
import {
  AdministratorsOnly,
  Authorization,
  CurrentKey,
  NeedsScope,
  OpenToRouterKeys
} from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { UserId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { pageQuery } from "../core/Page.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { NewUser, Role, User } from "./User.ts"

/** Health, stats and users, for every key. Source: contract/accounts#endpoints. */

export const Health = Schema.Struct({
  status: Schema.String,
  timestamp: Timestamp,
  uptime: Schema.Finite.annotate({ description: "Seconds" }),
  version: Schema.String,
  apiKey: Schema.String.annotate({ description: "Name of the key that asked" }),
  userId: UserId,
  message: Schema.String
}).annotate({ identifier: "Health", description: "The server answers and the key is good" })
export type Health = typeof Health.Type

export const Stats = Schema.Struct({
  user: Schema.Struct({
    id: UserId,
    email: Schema.String,
    name: Schema.String,
    role: Role,
    createdAt: Timestamp
  }),
  apiStats: Schema.Struct({
    totalApiKeys: Schema.Int,
    requestsToday: Schema.Int.annotate({ description: "UTC day" }),
    requestsThisWeek: Schema.Int.annotate({ description: "ISO week, from Monday" }),
    requestsThisMonth: Schema.Int,
    errorRate: Schema.String.annotate({ description: "Of this month", examples: ["0.25%"] }),
    errorCount: Schema.Int.annotate({ description: "Answers of this month with a status of 400 or more" })
  }),
  meta: Schema.Struct({ timestamp: Timestamp, apiKey: Schema.String })
}).annotate({ identifier: "Stats", description: "The owner's requests, over all their keys" })
export type Stats = typeof Stats.Type

export const usersLimitDefault = 10

export const UserList = Schema.Struct({
  users: Schema.Array(User),
  meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int, apiKey: Schema.String })
}).annotate({ identifier: "UserList", description: "Users: the caller, or everyone for an administrator" })

export const UserEcho = Schema.Struct({
  message: Schema.String,
  requestedData: Schema.Struct({ email: Schema.String, name: Schema.String, role: Role }),
  apiKey: Schema.String
}).annotate({ identifier: "UserEcho", description: "What was sent; nothing was made" })

export const Deleted = Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
  identifier: "Deleted",
  description: "It is gone"
})

/** `limit` and `offset` are read for administrators only; for others even invalid ones are ignored. */
export class PagesForAdmins extends HttpApiMiddleware.Service<PagesForAdmins, { requires: CurrentKey }>()(
  "signalbox/accounts/PagesForAdmins"
) {}

export class AccountApi extends HttpApiGroup.make("account")
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Health })
      .annotate(NeedsScope, "any")
      .annotate(OpenApi.Summary, "Is the key good?"),
    HttpApiEndpoint.get("stats", "/stats", { success: Stats })
      .annotate(NeedsScope, "any")
      .annotate(OpenApi.Summary, "The owner's requests"),
    HttpApiEndpoint.get("listUsers", "/users", {
      query: pageQuery({ limitDefault: usersLimitDefault, limitMax: 100 }),
      success: UserList
    })
      .middleware(PagesForAdmins)
      .annotate(NeedsScope, "any")
      .annotate(OpenApi.Summary, "The caller's own record; all users for an administrator"),
    HttpApiEndpoint.post("echoUser", "/users", { payload: NewUser, success: UserEcho })
      .middleware(JsonBody)
      .annotate(AdministratorsOnly, true)
      .annotate(OpenApi.Summary, "Validate a user and echo it (administrators)")
      .annotate(OpenApi.Description, "Makes nothing: users are made by `POST /api/v1/admin/users`.")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotate(OpenToRouterKeys, true)
  .annotateMerge(
    OpenApi.annotations({
      title: "Account",
      description: "Health, statistics and users of the key's owner."
    })
  )
  .prefix("/api/v1") {}
