import { Effect, Result } from "effect"
import { HttpEffect, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { invalidField } from "#schemas/core/Problem.ts"
import { listLimitDefault } from "#schemas/notify/Message.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { AppConfig } from "#src/Config.ts"
import { readJson } from "#src/http/JsonBody.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { readSend } from "#streams/notify/SendFields.ts"
import { MessageLog, type Reader } from "../log/MessageLog.ts"
import { ProjectKeys } from "../projects/ProjectKeys.ts"
import { Projects } from "../projects/Projects.ts"
import { Sending } from "./Sending.ts"

const replayed = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "idempotent-replay", "true"))
)

/** The depth counts the fields of a send from within: a `body` of the greatest depth has an object around it. */
const sendDepthMax = jsonDepthMax + 1

/** Gives a read its reader, as whom the request's key reads. */
const makeRead = Effect.map(
  serverUrlFor,
  (urlFor) =>
    <A, E, R>(
      request: HttpServerRequest.HttpServerRequest,
      use: (reader: Reader) => Effect.Effect<A, E, R>
    ) =>
      CurrentKey.pipe(
        Effect.flatMap(({ id, kind, ownerId }) =>
          use({
            owner: ownerId,
            keyId: kind === "project" ? id : undefined,
            serverUrl: urlFor(request)
          })
        ),
        storeAway
      )
)

export const layer = HttpApiBuilder.group(
  NotifyRoomApi,
  "messages",
  Effect.fnUntraced(function* (handlers) {
    const sending = yield* Sending
    const log = yield* MessageLog
    const keys = yield* ProjectKeys
    const projects = yield* Projects
    const read = yield* makeRead
    const urlFor = yield* serverUrlFor
    const { limits } = yield* AppConfig

    const send = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const caller = yield* CurrentKey
      const fields = Result.mapError(
        readSend(yield* readJson(request, limits.messageBodyBytes, sendDepthMax)),
        ({ field, text }) => invalidField(field, text)
      )
      // Revoked while the body came.
      const key = keys.ofPrincipal(caller)
      if (key === undefined) return yield* invalidKey()
      const { isReplay, sent } = yield* sending.send({
        key,
        fields: yield* Effect.fromResult(fields),
        idempotencyKey: request.headers["idempotency-key"],
        serverUrl: urlFor(request)
      })
      if (isReplay) yield* replayed
      return sent
    })
    return handlers
      .handleRaw("sendMessage", ({ request }) => send(request))
      .handle("sendTestMessage", ({ params, request }) =>
        CurrentKey.pipe(
          Effect.flatMap(({ ownerId }) => storeAway(projects.find(params.id, ownerId))),
          Effect.flatMap((project) => sending.test(project, urlFor(request)))
        )
      )
      .handle("listMessages", ({ query, request }) =>
        read(request, (reader) => log.list(reader, { limit: listLimitDefault, ...query }))
      )
      .handle("readMessage", ({ params, request }) => read(request, (reader) => log.read(reader, params.id)))
      .handle("listMessageDeliveries", ({ params, query, request }) =>
        read(request, (reader) => log.deliveries(reader, params.id, { limit: listLimitDefault, ...query }))
      )
      .handle("deleteMessage", ({ params, request }) =>
        Effect.as(
          read(request, (reader) => log.remove(reader, params.id)),
          { deleted: true as const }
        )
      )
      .handle("listDeadDeliveries", ({ query, request }) =>
        read(request, (reader) => log.dead(reader, { limit: listLimitDefault, ...query }))
      )
  })
)
