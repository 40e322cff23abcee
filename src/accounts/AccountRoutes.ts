import { Clock, Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { PagesForAdmins, usersLimitDefault } from "#schemas/accounts/AccountApi.ts"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import packageJson from "../../package.json" with { type: "json" }
import { Keys } from "./Keys.ts"
import { RequestCounts } from "./RequestCounts.ts"
import { administers, Users } from "./Users.ts"

const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis).toISOString())

const health = Effect.gen(function* () {
  const { keyName, ownerId: userId } = yield* CurrentKey
  const timestamp = yield* now
  return {
    status: "ok",
    timestamp,
    uptime: Math.round(process.uptime() * 1000) / 1000,
    version: packageJson.version,
    apiKey: keyName,
    userId,
    message: "OK"
  }
})

/** `0.00%` when nothing was asked. Source: contract/accounts#health-and-stats. */
const percentage = (part: number, whole: number): string =>
  `${(whole === 0 ? 0 : (part / whole) * 100).toFixed(2)}%`

const stats = Effect.gen(function* () {
  const { keyName, ownerId: userId } = yield* CurrentKey
  const figures = yield* storeAway(Effect.flatMap(RequestCounts, (counts) => counts.ofUser(userId)))
  // The key's owner was there a moment ago, when the key was looked up.
  const user = yield* Effect.flatMap(Users, (users) => Effect.orDie(users.find(userId)))
  const { createdAt, email, id, name, role } = user
  return {
    user: { id, email, name, role, createdAt: createdAt.toISOString() },
    apiStats: {
      totalApiKeys: (yield* Keys).countOf(userId),
      requestsToday: figures.today,
      requestsThisWeek: figures.week,
      requestsThisMonth: figures.month,
      errorRate: percentage(figures.errorsThisMonth, figures.month),
      errorCount: figures.errorsThisMonth
    },
    meta: { timestamp: yield* now, apiKey: keyName }
  }
})

/** Administrators get all users, page by page; others their own record. Source: contract/accounts#users. */
const listUsers = (query: { readonly limit?: number; readonly offset?: number }) =>
  Effect.gen(function* () {
    const caller = yield* CurrentKey
    const { keyName, ownerId: userId } = caller
    const users = yield* Users
    const page = pageOf(query, usersLimitDefault)
    if (!administers(caller)) {
      const own = yield* Effect.orDie(users.find(userId))
      return { users: [own], meta: { ...page, total: 1, apiKey: keyName } }
    }
    const listed = yield* storeAway(users.list(page))
    return { users: listed.rows, meta: { ...page, total: listed.total, apiKey: keyName } }
  })

export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "account",
  Effect.fnUntraced(function* (handlers) {
    const deps = yield* Effect.context<Keys | Users | RequestCounts>()
    return handlers.handleAll({
      health: () => health,
      stats: () => Effect.provideContext(stats, deps),
      listUsers: ({ query }) => Effect.provideContext(listUsers(query), deps),
      echoUser: ({ payload: { email, name, role } }) =>
        Effect.gen(function* () {
          const { keyName } = yield* CurrentKey
          return {
            message: "Valid; nothing was made (users are made by POST /api/v1/admin/users)",
            requestedData: { email, name, role: role ?? ("user" as const) },
            apiKey: keyName
          }
        })
    })
  })
)

const withoutPage = (params: Readonly<Record<string, string | Array<string>>>) =>
  Object.fromEntries(Object.entries(params).filter(([name]) => name !== "limit" && name !== "offset"))

/** Without an administrator's key `limit` and `offset` are not even read. */
export const pagesForAdmins = Layer.succeed(PagesForAdmins, (httpEffect) =>
  Effect.flatMap(CurrentKey, (caller) =>
    administers(caller)
      ? httpEffect
      : Effect.updateService(httpEffect, HttpServerRequest.ParsedSearchParams, withoutPage)
  )
)
