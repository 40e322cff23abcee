import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { LlmRoomApi } from "#schemas/llm/LlmRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import type { CollectionRow } from "#schemas/llm/Collection.ts"
import type { CollectionModel, Model } from "#schemas/llm/Model.ts"
import { Catalogue } from "./Catalogue.ts"
import type { CatalogueModel } from "./CatalogueModel.ts"
import { CollectionDirectory, slugKey } from "./CollectionDirectory.ts"
import { Collections } from "./Collections.ts"
import { isFiltered, selectModels } from "./ModelSelection.ts"
import { collectionPrefix, mayUseCollection, mayUseModel } from "#src/llm/calls/Candidates.ts"
import { Forbidden, NotFound, ServiceUnavailable } from "#schemas/core/Problem.ts"

const modelResource = (model: CatalogueModel): Model => ({
  id: model.id,
  object: "model",
  created: model.created,
  owned_by: model.provider,
  name: model.name,
  description: model.description,
  context_length: model.contextLength,
  architecture: { input_modalities: model.inputModalities, output_modalities: model.outputModalities },
  categories: model.categories,
  pricing: model.pricing,
  supported_parameters: model.supportedParameters,
  top_provider: {
    context_length: model.contextLength,
    max_completion_tokens: model.maxCompletionTokens
  }
})

const collectionResource = ({ auto_route, id, name, slug }: CollectionRow): CollectionModel => ({
  id: `${collectionPrefix}${slug}`,
  object: "model",
  owned_by: "collection",
  name,
  collection: { id, auto_route }
})

export const layer = HttpApiBuilder.group(
  LlmRoomApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const catalogue = yield* Catalogue
    const collections = yield* Collections
    const directory = yield* CollectionDirectory

    /** Scope comes before existence: a key cannot find out about models beyond its scope. */
    const find = Effect.fnUntraced(function* (id: string) {
      const key = yield* CurrentKey
      const isCollection = id.startsWith(collectionPrefix)
      const collection = isCollection
        ? directory.by("slug", slugKey(key.ownerId, id.slice(collectionPrefix.length)))
        : undefined
      if (isCollection ? !mayUseCollection(key, collection?.id) : !mayUseModel(key, id)) {
        return yield* Forbidden.of("This key may not use that model", { code: "model_not_allowed" })
      }
      if (collection !== undefined) return collectionResource(collection)
      const model = catalogue.get(id)
      if (model === undefined && catalogue.status().fetchedAt === undefined) {
        return yield* ServiceUnavailable.of("The list of models could not be fetched yet")
      }
      if (model === undefined) {
        return yield* NotFound.of("There is no such model", { code: "model_not_found", param: "id" })
      }
      return modelResource(model)
    })

    return handlers.handleAll({
      listModels: ({ query }) =>
        Effect.map(CurrentKey, (key) => {
          const allowed = catalogue.all().filter(({ id }) => mayUseModel(key, id))
          const { page, total } = selectModels(allowed, query)
          const owned =
            query.include_collections === false || isFiltered(query) ? [] : collections.listFor(key)
          return {
            object: "list" as const,
            data: [...owned.map(collectionResource), ...page.map(modelResource)],
            meta: { total, returned: page.length, collections: owned.length }
          }
        }),
      readModel: ({ params }) => find(params.id),
      readProvidersModel: ({ params }) => find(`${params.provider}/${params.name}`)
    })
  })
)
