import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { SqlClient } from "effect/sql/SqlClient"
import { NotImplemented } from "#schemas/core/Problem.ts"
import { timeZoneOf } from "#schemas/core/TimeZone.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { CurrentSubscriber } from "#schemas/notify/SubscriberToken.ts"
import { Admission, invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { Joining } from "../subscribers/Joining.ts"
import { hourly, unstored } from "../subscribers/SettingsRoutes.ts"
import { SubscriberTokens } from "../subscribers/SubscriberTokens.ts"
import { TelegramBot } from "./TelegramBot.ts"
import { type CodeOrder, TelegramCodes } from "./TelegramCodes.ts"

const noBot = () => NotImplemented.of("This server has no bot of Telegram")

/** A code, once its order is known: the address counts before anything is looked up. */
const makeCode = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const admission = yield* Admission
  const codes = yield* TelegramCodes
  const { bot } = yield* TelegramBot
  const made = hourly("Telegram codes", limits.telegramCodesPerHour)
  return Effect.fnUntraced(function* <E, R>(order: Effect.Effect<CodeOrder, E, R>) {
    yield* admission.enterWithoutKey(yield* HttpServerRequest.HttpServerRequest, made)
    yield* unstored
    if (bot === undefined) return yield* noBot()
    const ordered = yield* order
    const username = yield* bot.username
    const { code, expiresAt, id } = yield* codes.make(ordered)
    const [startUrl, groupUrl] = [bot.link(username, "start", code), bot.link(username, "startgroup", code)]
    return { id, startUrl, groupUrl, expiresAt }
  })
})

export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "telegram",
  Effect.fnUntraced(function* (handlers) {
    const { limits } = yield* AppConfig
    const admission = yield* Admission
    const codes = yield* TelegramCodes
    const joining = yield* Joining
    const sql = yield* SqlClient
    const tokens = yield* SubscriberTokens
    const looks = {
      meter: {
        name: "Telegram code states",
        shape: "bucket",
        per: "address",
        limit: limits.settingsRequestsPerMinute,
        seconds: 60
      },
      cost: 1
    } as const

    const make = yield* makeCode
    return handlers.handleAll({
      joinByTelegram: ({ params, payload }) =>
        make(
          Effect.gen(function* () {
            const { authorization } = (yield* HttpServerRequest.HttpServerRequest).headers
            const by = tokens.shown(authorization)
            const project = yield* joining.project(params.token)
            const timezone = yield* timeZoneOf(payload.timezone)
            const subscriberId = by === undefined ? undefined : yield* tokens.holder(by)
            if (authorization !== undefined && subscriberId === undefined) return yield* invalidKey()
            return {
              project: { id: project.id, joinHash: hashOf(params.token) },
              subscriberId,
              name: payload.name ?? "",
              timezone
            }
          })
        ).pipe(storeAwayUntimed),
      addTelegram: () =>
        make(
          Effect.gen(function* () {
            const { id } = yield* CurrentSubscriber
            const [row] = yield* sql<{ timezone: string }>`SELECT timezone FROM subscribers WHERE id = ${id}`
            if (row === undefined) return yield* invalidKey()
            return { project: undefined, subscriberId: id, name: "", timezone: row.timezone }
          })
        ).pipe(storeAwayUntimed),
      readTelegramCode: ({ params: { id } }) =>
        Effect.gen(function* () {
          yield* admission.enterWithoutKey(yield* HttpServerRequest.HttpServerRequest, looks)
          const state = yield* codes.state(id)
          return state === undefined ? yield* notFound("Code") : { id, state }
        }).pipe(storeAway)
    })
  })
)
