import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { listLimitDefault } from "#schemas/notify/Message.ts"
import { NotifyRoomApi } from "#schemas/notify/NotifyRoomApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { MessageLog, type Reader } from "./MessageLog.ts"
import { Projects } from "../projects/Projects.ts"
import { Sending } from "../sending/Sending.ts"

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
    const projects = yield* Projects
    const read = yield* makeRead
    const urlFor = yield* serverUrlFor
    return handlers
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
