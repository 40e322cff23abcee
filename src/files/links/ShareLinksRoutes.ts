import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { FilesRoomApi } from "#schemas/files/FilesRoomApi.ts"
import { linkListLimits } from "#schemas/files/ShareLink.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { type OwnLink, ShareLinks } from "./ShareLinks.ts"
import { directPath } from "./UploadLinks.ts"

const owner = Effect.map(CurrentKey, ({ ownerId }) => ownerId)

export const layer = HttpApiBuilder.group(
  FilesRoomApi,
  "shareLinks",
  Effect.fnUntraced(function* (handlers) {
    const links = yield* ShareLinks
    const urlFor = yield* serverUrlFor
    const showing = Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
      const origin = urlFor(request)
      return <L extends OwnLink>(link: L) => ({
        ...link,
        url: origin + directPath(link.token),
        singleUse: link.maxRequests === 1,
        expiresAt: link.expiresAt?.toISOString() ?? null,
        createdAt: link.createdAt.toISOString()
      })
    })

    return handlers.handleAll({
      createShareLink: ({ payload }) =>
        Effect.gen(function* () {
          const show = yield* showing
          return show(yield* links.make(yield* owner, payload))
        }).pipe(storeAway),
      listShareLinks: ({ query }) =>
        Effect.gen(function* () {
          const show = yield* showing
          const limit = query.limit ?? linkListLimits.limitDefault
          const { cursor, links: own } = yield* links.list(yield* owner, { ...query, limit })
          return { links: own.map(show), cursor }
        }).pipe(storeAway),
      readShareLink: ({ params }) =>
        Effect.gen(function* () {
          const show = yield* showing
          const { downloads, ...link } = yield* links.read(yield* owner, params.token)
          return {
            ...show(link),
            downloads: downloads.map((one) => ({ ...one, startedAt: one.startedAt.toISOString() }))
          }
        }).pipe(storeAway),
      deleteShareLink: ({ params }) =>
        Effect.gen(function* () {
          yield* links.revoke(yield* owner, params.token)
          return { success: true as const }
        }).pipe(storeAway)
    })
  })
)
