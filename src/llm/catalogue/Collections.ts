import { Context, Effect, Layer, Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { type CollectionChange, type NewCollection, slugLengthMax } from "#schemas/llm/Collection.ts"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Catalogue } from "./Catalogue.ts"
import { CollectionDirectory, type CollectionRow } from "./CollectionDirectory.ts"
import { CollectionsRepository } from "./CollectionsRepository.ts"
import { mayUseCollection } from "#src/llm/calls/Candidates.ts"

/**
 * A slug from a name: accents and case are dropped, everything else but letters and digits becomes a hyphen. Undefined
 * if nothing is left, as of a name in another script.
 */
export const slugOf = (name: string): string | undefined => {
  const slug = name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, slugLengthMax)
    .replace(/-+$/, "")
  return slug === "" ? undefined : slug
}

/** Missing, deleted, or another user's. */
export class CollectionNotFound extends Schema.TaggedError<CollectionNotFound>()("CollectionNotFound", {
  id: Schema.String
}) {}

/** A field that fits its schema but not the state of the server. */
export class CollectionFieldInvalid extends Schema.TaggedError<CollectionFieldInvalid>()(
  "CollectionFieldInvalid",
  { field: Schema.String, problem: Schema.String }
) {}

/** Another collection of the same owner has the slug. */
export class SlugTaken extends Schema.TaggedError<SlugTaken>()("SlugTaken", { slug: Schema.String }) {}

export class TooManyCollections extends Schema.TaggedError<TooManyCollections>()("TooManyCollections", {
  limit: Schema.Int
}) {}

/** There has never been a list of models, so whether these exist is unknown. */
export class ModelsUnknown extends Schema.TaggedError<ModelsUnknown>()("ModelsUnknown", {}) {}

/** Collections of users. A change holds in this process at once, elsewhere within a second. */
export class Collections extends Context.Service<
  Collections,
  {
    /** oldest first */
    readonly list: (userId: string) => ReadonlyArray<CollectionRow>
    /** those of its owner that a key may use */
    readonly listFor: (key: Principal) => ReadonlyArray<CollectionRow>
    /** `owner` undefined: an administrator, who reaches the collections of all users */
    readonly find: (id: string, owner: string | undefined) => Effect.Effect<CollectionRow, CollectionNotFound>
    readonly create: (
      userId: string,
      collection: NewCollection
    ) => Effect.Effect<
      CollectionRow,
      CollectionFieldInvalid | SlugTaken | TooManyCollections | ModelsUnknown | SqlError
    >
    readonly update: (
      id: string,
      owner: string | undefined,
      change: CollectionChange
    ) => Effect.Effect<
      CollectionRow,
      CollectionNotFound | CollectionFieldInvalid | SlugTaken | ModelsUnknown | SqlError
    >
    readonly remove: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<void, CollectionNotFound | SqlError>
  }
>()("signalbox/llm/Collections") {
  static readonly layerNoDeps = Layer.effect(
    Collections,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const directory = yield* CollectionDirectory
      return {
        ...reading(directory),
        ...writing(directory, yield* CollectionsRepository, yield* Catalogue, limits)
      }
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(CollectionsRepository.layer))
}

const byAge = (a: CollectionRow, b: CollectionRow): number =>
  a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1)

const invalid = (field: string, problem: string) =>
  Effect.fail(new CollectionFieldInvalid({ field, problem }))

const slugTaken = (slug: string) => (error: SqlError) =>
  isSqlError(error) && error.reason._tag === "UniqueViolation" ? new SlugTaken({ slug }) : error

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
    if (models.length > modelsMax) return yield* invalid("models", `at most ${modelsMax} models`)
    if (catalogue.status().fetchedAt === undefined) return yield* new ModelsUnknown()
    for (const [index, id] of models.entries()) {
      if (models.indexOf(id) < index) return yield* invalid(`models[${index}]`, "is there twice")
      if (catalogue.get(id) === undefined && !before.includes(id)) {
        return yield* invalid(`models[${index}]`, "there is no such model")
      }
    }
  })

const reading = (directory: CollectionDirectory["Service"]) => {
  const list = (userId: string) =>
    [...directory.all()].filter((collection) => collection.userId === userId).sort(byAge)
  return {
    list,
    listFor: (key: Principal) => list(key.userId).filter(({ id }) => mayUseCollection(key, id)),
    find: (id: string, owner: string | undefined) => {
      const collection = directory.get(id)
      return collection !== undefined && (owner === undefined || collection.userId === owner)
        ? Effect.succeed(collection)
        : Effect.fail(new CollectionNotFound({ id }))
    }
  }
}

const writing = (
  directory: CollectionDirectory["Service"],
  repository: CollectionsRepository["Service"],
  catalogue: Catalogue["Service"],
  limits: CollectionLimits
) => {
  /** Puts a written row into the directory. */
  const written = <E>(id: string, write: Effect.Effect<CollectionRow | undefined, E>) =>
    Effect.flatMap(write, (row) => {
      if (row === undefined) return Effect.fail(new CollectionNotFound({ id }))
      directory.applyLocal(row)
      return Effect.succeed(row)
    })

  const create = Effect.fn("Collections.create")(function* (userId: string, collection: NewCollection) {
    const slug = collection.slug ?? slugOf(collection.name)
    if (slug === undefined) return yield* invalid("slug", "is required: none can be made from the name")
    yield* checkModels(catalogue, collection.models, [], limits.collectionModels)
    const row = yield* Effect.mapError(
      repository.insert(
        {
          id: newId("col"),
          user_id: userId,
          name: collection.name,
          slug,
          auto_route: collection.auto_route ?? true,
          models: collection.models
        },
        limits.collectionsPerUser
      ),
      slugTaken(slug)
    )
    if (row === undefined) return yield* new TooManyCollections({ limit: limits.collectionsPerUser })
    directory.applyLocal(row)
    return row
  })

  const update = Effect.fn("Collections.update")(function* (
    id: string,
    owner: string | undefined,
    change: CollectionChange
  ) {
    if (change.models !== undefined) {
      // Another process may have made or changed it a moment ago, so Postgres is asked for its members.
      const known = yield* repository.update(id, owner, {})
      if (known === undefined) return yield* new CollectionNotFound({ id })
      yield* checkModels(catalogue, change.models, known.models, limits.collectionModels)
    }
    return yield* written(
      id,
      Effect.mapError(repository.update(id, owner, change), slugTaken(change.slug ?? ""))
    )
  })

  const remove = Effect.fn("Collections.remove")(function* (id: string, owner: string | undefined) {
    yield* written(id, repository.markDeleted(id, owner))
  })

  return { create, update, remove }
}
