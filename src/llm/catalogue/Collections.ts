import { Context, Effect, Layer } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import {
  type CollectionChange,
  type CollectionRow,
  type NewCollection,
  slugLengthMax
} from "#schemas/llm/Collection.ts"
import { slugOf } from "#schemas/core/Slug.ts"
import { AppConfig } from "#src/Config.ts"
import {
  type BadRequest,
  Conflict,
  invalidField,
  type NotFound,
  ServiceUnavailable
} from "#schemas/core/Problem.ts"
import { Catalogue } from "./Catalogue.ts"
import { CollectionDirectory } from "./CollectionDirectory.ts"
import { mayUseCollection } from "#src/llm/calls/Candidates.ts"

/** Collections of users. A change holds in this process at once, elsewhere within a second. */
export class Collections extends Context.Service<
  Collections,
  {
    /** oldest first */
    readonly list: (userId: string) => ReadonlyArray<CollectionRow>
    /** those of its owner that a key may use */
    readonly listFor: (key: Principal) => ReadonlyArray<CollectionRow>
    /** `owner` undefined: an administrator, who reaches the collections of all users */
    readonly find: (id: string, owner: string | undefined) => Effect.Effect<CollectionRow, NotFound>
    readonly create: (
      userId: string,
      collection: NewCollection
    ) => Effect.Effect<CollectionRow, BadRequest | Conflict | ServiceUnavailable | SqlError>
    readonly update: (
      id: string,
      owner: string | undefined,
      change: CollectionChange
    ) => Effect.Effect<CollectionRow, NotFound | BadRequest | Conflict | ServiceUnavailable | SqlError>
    readonly remove: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<CollectionRow, NotFound | SqlError>
  }
>()("signalbox/llm/Collections") {
  static readonly layer = Layer.effect(
    Collections,
    Effect.gen(function* () {
      return make(yield* CollectionDirectory, yield* Catalogue, (yield* AppConfig).limits)
    })
  )
}

const slugTaken =
  (slug: string) =>
  <E>(error: E | SqlError) =>
    isSqlError(error) && error.reason._tag === "UniqueViolation"
      ? Conflict.of(`slug: "${slug}" is taken by another collection`, { code: "slug_taken", param: "slug" })
      : error

interface CollectionLimits {
  readonly collectionModels: number
  readonly collectionsPerUser: number
}

/**
 * Members have to be models of today, each once. One that is a member already may stay when the upstream has dropped it:
 * else such a collection could no longer be changed.
 */
const checkModels = (
  catalogue: Catalogue["Service"],
  models: ReadonlyArray<string>,
  before: ReadonlyArray<string>,
  modelsMax: number
) =>
  Effect.gen(function* () {
    if (models.length > modelsMax) return yield* invalidField("models", `at most ${modelsMax} models`)
    if (catalogue.status().fetchedAt === undefined)
      return yield* ServiceUnavailable.of("The upstream's list of models is not there; try again later")
    for (const [index, id] of models.entries()) {
      if (models.indexOf(id) < index) return yield* invalidField(`models[${index}]`, "is there twice")
      if (catalogue.get(id) === undefined && !before.includes(id)) {
        return yield* invalidField(`models[${index}]`, "there is no such model")
      }
    }
  })

const make = (
  directory: CollectionDirectory["Service"],
  catalogue: Catalogue["Service"],
  limits: CollectionLimits
): Collections["Service"] => ({
  list: directory.list,
  listFor: (key) => directory.list(key.ownerId).filter(({ id }) => mayUseCollection(key, id)),
  find: directory.find,
  create: Effect.fn("Collections.create")(function* (userId, { auto_route = true, models, name, ...given }) {
    const slug = given.slug ?? slugOf(name, slugLengthMax)
    if (slug === undefined) return yield* invalidField("slug", "is required: none can be made from the name")
    yield* checkModels(catalogue, models, [], limits.collectionModels)
    const fields = { name, slug, auto_route, models }
    return yield* Effect.mapError(
      directory.insertFor(userId, fields, limits.collectionsPerUser),
      slugTaken(slug)
    )
  }),
  update: Effect.fn("Collections.update")(function* (id, owner, change) {
    if (change.models !== undefined) {
      // Another process may have made or changed it a moment ago, so Postgres is asked for its members.
      const known = yield* directory.read(id, owner)
      yield* checkModels(catalogue, change.models, known.models, limits.collectionModels)
    }
    return yield* Effect.mapError(directory.update(id, owner, change), slugTaken(change.slug ?? ""))
  }),
  remove: (id, owner) => directory.remove(id, owner)
})
