import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import type { Collection, CollectionRow } from "#schemas/llm/Collection.ts"
import { reachOf, Users } from "#src/accounts/Users.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { Catalogue } from "./Catalogue.ts"
import { Collections } from "./Collections.ts"
import { collectionPrefix, mayUseCollection } from "#src/llm/calls/Candidates.ts"
import { Forbidden } from "#schemas/core/Problem.ts"

const collectionResource =
  (catalogue: Catalogue["Service"]) =>
  (row: CollectionRow): Collection => ({
    id: row.id,
    model: `${collectionPrefix}${row.slug}`,
    name: row.name,
    slug: row.slug,
    auto_route: row.auto_route,
    models: row.models.map((id, position) => {
      const model = catalogue.get(id)
      return {
        position,
        id,
        vision: model?.isVision === true,
        free: model?.isFree === true,
        available: model !== undefined
      }
    })
  })

const deed = "reach the collections of others"

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "collections",
  Effect.fnUntraced(function* (handlers) {
    const collections = yield* Collections
    const users = yield* Users
    const resourceOf = collectionResource(yield* Catalogue)

    return handlers.handleAll({
      listCollections: ({ query }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentKey
          const userId = yield* users.meant(caller, query.user_id, deed)
          const listed = userId === caller.ownerId ? collections.listFor(caller) : collections.list(userId)
          return { object: "list" as const, data: listed.map(resourceOf) }
        }),
      createCollection: ({ payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => users.meant(caller, payload.user_id, deed)),
          Effect.flatMap((userId) => collections.create(userId, payload)),
          storeAway,
          Effect.map(resourceOf)
        ),
      readCollection: ({ params }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentKey
          if (!mayUseCollection(caller, params.id)) {
            return yield* Forbidden.of("This key may not use that collection", { code: "model_not_allowed" })
          }
          return resourceOf(yield* collections.find(params.id, reachOf(caller)))
        }),
      updateCollection: ({ params, payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => collections.update(params.id, reachOf(caller), payload)),
          storeAway,
          Effect.map(resourceOf)
        ),
      deleteCollection: ({ params }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => collections.remove(params.id, reachOf(caller))),
          storeAway,
          Effect.as({ id: params.id, deleted: true as const })
        )
    })
  })
)
