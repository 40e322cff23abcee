import { Context, Effect, Layer, Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import {
  type CollectionChange,
  type CollectionRow,
  type NewCollection,
  slugLengthMax
} from "#schemas/llm/Collection.ts"
import { AppConfig } from "#src/Config.ts"
import type { RowNotFound, TooManyRows } from "#src/infra/postgres/Table.ts"
import { Catalogue } from "./Catalogue.ts"
import { CollectionDirectory } from "./CollectionDirectory.ts"
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

/** A field that fits its schema but not the state of the server. */
export class CollectionFieldInvalid extends Schema.TaggedError<CollectionFieldInvalid>()(
  "CollectionFieldInvalid",
  { field: Schema.String, problem: Schema.String }
) {}

/** Another collection of the same owner has the slug. */
export class SlugTaken extends Schema.TaggedError<SlugTaken>()("SlugTaken", { slug: Schema.String }) {}

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
    readonly find: (id: string, owner: string | undefined) => Effect.Effect<CollectionRow, RowNotFound>
    readonly create: (
      userId: string,
      collection: NewCollection
    ) => Effect.Effect<
      CollectionRow,
      CollectionFieldInvalid | SlugTaken | TooManyRows | ModelsUnknown | SqlError
    >
    readonly update: (
      id: string,
      owner: string | undefined,
      change: CollectionChange
    ) => Effect.Effect<
      CollectionRow,
      RowNotFound | CollectionFieldInvalid | SlugTaken | ModelsUnknown | SqlError
    >
    readonly remove: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<CollectionRow, RowNotFound | SqlError>
  }
>()("signalbox/llm/Collections") {
  static readonly layer = Layer.effect(
    Collections,
    Effect.gen(function* () {
      return make(yield* CollectionDirectory, yield* Catalogue, (yield* AppConfig).limits)
    })
  )
}

const invalid = (field: string, problem: string) =>
  Effect.fail(new CollectionFieldInvalid({ field, problem }))

const slugTaken =
  (slug: string) =>
  <E>(error: E | SqlError) =>
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

const make = (
  directory: CollectionDirectory["Service"],
  catalogue: Catalogue["Service"],
  limits: CollectionLimits
): Collections["Service"] => ({
  list: directory.list,
  listFor: (key) => directory.list(key.userId).filter(({ id }) => mayUseCollection(key, id)),
  find: directory.find,
  create: Effect.fn("Collections.create")(function* (userId, { auto_route = true, models, name, ...given }) {
    const slug = given.slug ?? slugOf(name)
    if (slug === undefined) return yield* invalid("slug", "is required: none can be made from the name")
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
