import { Effect } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Metering } from "#schemas/core/Authorization.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { CurrentSubscriber } from "#schemas/notify/SubscriberToken.ts"
import { Admission, invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { notFound } from "#src/infra/postgres/Table.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { Channels } from "./Channels.ts"
import { ChannelTests } from "./ChannelTests.ts"
import { Joining } from "./Joining.ts"
import { Subscribers } from "./Subscribers.ts"
import { SubscriberTokens } from "./SubscriberTokens.ts"

export const settingsPath = "/n/me"

/** Answers that have a token or a secret in them are for the one who asked. */
export const unstored = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "cache-control", "no-store"))
)

export const hourly = (name: string, limit: number): Metering => ({
  meter: { name, shape: "window", per: "address", limit, seconds: 3_600 },
  cost: 1
})

const me = Effect.map(CurrentSubscriber, ({ id }) => id)
const deleted = { deleted: true as const }

export const joining = HttpApiBuilder.group(
  NotifyRoomApi,
  "joining",
  Effect.fnUntraced(function* (handlers) {
    const admission = yield* Admission
    const service = yield* Joining
    const tokens = yield* SubscriberTokens
    const urlFor = yield* serverUrlFor
    const { limits } = yield* AppConfig
    const joins = hourly("Joins", limits.joinsPerHour)
    return handlers.handleAll({
      joinProject: ({ params, payload }) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          yield* admission.enterWithoutKey(request, joins)
          yield* unstored
          const { authorization } = request.headers
          const by = tokens.shown(authorization)
          if (authorization !== undefined && by === undefined) return yield* invalidKey()
          const url = urlFor(request)
          const { added, token } = yield* storeAwayUntimed(service.join(params.token, by, payload, url))
          return { settingsUrl: `${url}${settingsPath}#${token}`, ...added }
        })
    })
  })
)

export const settings = HttpApiBuilder.group(
  NotifyRoomApi,
  "settings",
  Effect.fnUntraced(function* (handlers) {
    const channels = yield* Channels
    const subscribers = yield* Subscribers
    const urlFor = yield* serverUrlFor
    const admission = yield* Admission
    const channelTests = yield* ChannelTests
    const { limits } = yield* AppConfig
    const webhooks = hourly("Webhooks", limits.joinsPerHour)
    const tests = hourly("Channel tests", limits.channelTestsPerHour)
    const ownUrl = Effect.map(HttpServerRequest.HttpServerRequest, urlFor)

    return handlers.handleAll({
      readSettings: () => me.pipe(Effect.flatMap(subscribers.read), storeAway, Effect.tap(unstored)),
      updateSettings: ({ payload }) => storeAway(Effect.flatMap(me, (id) => subscribers.update(id, payload))),
      leave: () => me.pipe(Effect.flatMap(subscribers.leave), storeAway, Effect.as(deleted)),
      renewSettingsLink: () =>
        Effect.gen(function* () {
          yield* unstored
          const token = yield* storeAway(subscribers.renew(yield* me))
          return { settingsUrl: `${yield* ownUrl}${settingsPath}#${token}` }
        }),
      updateSubscription: ({ params, payload }) =>
        storeAway(Effect.flatMap(me, (id) => subscribers.choose(id, params.id, payload))),
      leaveProject: ({ params }) =>
        Effect.gen(function* () {
          const isGone = yield* subscribers.leaveProject(yield* me, params.id)
          return isGone ? deleted : yield* notFound("Project")
        }).pipe(storeAway),
      addChannel: ({ payload }) =>
        Effect.gen(function* () {
          // A link is posted to it, wherever it is.
          if (payload.webhook !== undefined)
            yield* admission.enterWithoutKey(yield* HttpServerRequest.HttpServerRequest, webhooks)
          yield* unstored
          const { channel, ...rest } = yield* storeAwayUntimed(
            channels.add(yield* me, payload, yield* ownUrl)
          )
          return { ...channel, ...rest }
        }),
      updateChannel: ({ params, payload }) =>
        storeAwayUntimed(Effect.flatMap(me, (id) => channels.change(id, params.id, payload))),
      removeChannel: ({ params }) =>
        storeAway(Effect.flatMap(me, (id) => channels.remove(id, params.id))).pipe(Effect.as(deleted)),
      testChannel: ({ params }) =>
        Effect.gen(function* () {
          yield* admission.enterWithoutKey(yield* HttpServerRequest.HttpServerRequest, tests)
          const settingsUrl = `${yield* ownUrl}${settingsPath}`
          return yield* storeAwayUntimed(channelTests.run(yield* me, params.id, settingsUrl))
        })
    })
  })
)
