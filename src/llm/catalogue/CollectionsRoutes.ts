import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CurrentKey, type Principal } from "#schemas/core/Authorization.ts"
import type { Collection, CollectionRow } from "#schemas/llm/Collection.ts"
import { Users } from "#src/accounts/Users.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { TooManyRows } from "#src/infra/postgres/Table.ts"
import { Catalogue } from "./Catalogue.ts"
import { type CollectionFieldInvalid, Collections, type SlugTaken } from "./Collections.ts"
import { collectionPrefix, mayUseCollection } from "#src/llm/calls/Candidates.ts"
import { Conflict, Forbidden, NotFound, ServiceUnavailable, invalidField } from "#schemas/core/Problem.ts"

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

const problems = {
  RowNotFound: () =>
    Effect.fail(NotFound.of("Collection not found", { code: "collection_not_found", param: "id" })),
  CollectionFieldInvalid: ({ field, problem }: CollectionFieldInvalid) =>
    Effect.fail(invalidField(field, problem)),
  SlugTaken: ({ slug }: SlugTaken) =>
    Effect.fail(
      Conflict.of(`slug: "${slug}" is taken by another collection`, { code: "slug_taken", param: "slug" })
    ),
  ModelsUnknown: () =>
    Effect.fail(ServiceUnavailable.of("The upstream's list of models is not there; try again later"))
}

const tooMany = ({ limit }: TooManyRows) =>
  Effect.fail(Conflict.of(`A user has at most ${limit} collections`, { code: "too_many_collections" }))

/** Administrators reach all users' collections. */
const reachOf = (key: Principal): string | undefined => (key.role === "admin" ? undefined : key.userId)

/** The user whose collections are meant: the caller, or for an administrator any user. */
const userOf = (users: Users["Service"], caller: Principal, userId: string | undefined) =>
  Effect.gen(function* () {
    if (userId === undefined || userId === caller.userId) return caller.userId
    if (caller.role !== "admin" || caller.kind !== "account") {
      return yield* Forbidden.of("user_id: only administrators reach the collections of others")
    }
    yield* Effect.mapError(users.find(userId), () =>
      NotFound.of("user_id: no such user", { code: "user_not_found", param: "user_id" })
    )
    return userId
  })

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
          const userId = yield* userOf(users, caller, query.user_id)
          const listed = userId === caller.userId ? collections.listFor(caller) : collections.list(userId)
          return { object: "list" as const, data: listed.map(resourceOf) }
        }),
      createCollection: ({ payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => userOf(users, caller, payload.user_id)),
          Effect.flatMap((userId) => collections.create(userId, payload)),
          storeAway,
          Effect.map(resourceOf),
          Effect.catchTags({
            CollectionFieldInvalid: problems.CollectionFieldInvalid,
            SlugTaken: problems.SlugTaken,
            ModelsUnknown: problems.ModelsUnknown,
            TooManyRows: tooMany
          })
        ),
      readCollection: ({ params }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentKey
          if (!mayUseCollection(caller, params.id)) {
            return yield* Forbidden.of("This key may not use that collection", { code: "model_not_allowed" })
          }
          // A router key acts for its owner alone, also where that is an administrator.
          const reach = caller.kind === "router" ? caller.userId : reachOf(caller)
          return resourceOf(yield* collections.find(params.id, reach))
        }).pipe(Effect.catchTag("RowNotFound", problems.RowNotFound)),
      updateCollection: ({ params, payload }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => collections.update(params.id, reachOf(caller), payload)),
          storeAway,
          Effect.map(resourceOf),
          Effect.catchTags(problems)
        ),
      deleteCollection: ({ params }) =>
        CurrentKey.pipe(
          Effect.flatMap((caller) => collections.remove(params.id, reachOf(caller))),
          storeAway,
          Effect.as({ id: params.id, deleted: true as const }),
          Effect.catchTag("RowNotFound", problems.RowNotFound)
        )
    })
  })
)
