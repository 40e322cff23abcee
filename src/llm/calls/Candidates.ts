import type { Principal } from "#schemas/core/Authorization.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"
import type { Catalogue } from "#src/llm/catalogue/Catalogue.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import type { ChatRequest } from "#src/llm/requests/ChatRequest.ts"
import type { CollectionRow } from "#schemas/llm/Collection.ts"
import { type CollectionDirectory, slugKey } from "#src/llm/catalogue/CollectionDirectory.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"

/** The models that may answer a request, in the order in which they are asked. */
export interface Candidates {
  readonly collection: CollectionRow | undefined
  readonly autoRoute: boolean
  /** models that describe the images first; none: not needed */
  readonly vision: ReadonlyArray<CatalogueModel>
  readonly primary: ReadonlyArray<CatalogueModel>
}

export const collectionPrefix = "collection/"

/**
 * A key without limits reaches everything of its owner; any limit leaves only the models that it names.
 * Source: contract/http#ownership.
 */
const isUnlimited = (key: Principal): boolean => key.models === null && key.collections === null

export const mayUseModel = (key: Principal, model: string): boolean =>
  isUnlimited(key) || key.models?.includes(model) === true

export const mayUseCollection = (key: Principal, collectionId: string | undefined): boolean =>
  isUnlimited(key) || (collectionId !== undefined && key.collections?.includes(collectionId) === true)

type Models = Pick<Catalogue["Service"], "get" | "status">
type Collections = Pick<CollectionDirectory["Service"], "by">

/** Scope is checked before existence: a key cannot find out about models beyond its scope. */
export const resolve = (
  key: Principal,
  request: ChatRequest,
  catalogue: Models,
  collections: Collections
): Candidates | Problem => {
  if (!request.model.startsWith(collectionPrefix)) return direct(key, request, catalogue)
  const slug = request.model.slice(collectionPrefix.length)
  const collection = collections.by("slug", slugKey(key.ownerId, slug))
  if (!mayUseCollection(key, collection?.id)) return CallFault.modelNotAllowed(request.model, "model")
  if (collection === undefined) return CallFault.modelNotFound(request.model)
  const members = collection.models.map((id) => catalogue.get(id)).filter((model) => model !== undefined)
  if (members.length === 0)
    return CallFault.noAvailableModel(`No member of ${request.model} is available`, unavailableRetrySeconds)
  return membersOf(collection, members, request)
}

/** A model that has left the upstream's list seldom returns soon. */
const unavailableRetrySeconds = 60

/** The model asked for, then the caller's own fallbacks. Absent ones are left out while another is there. */
const direct = (key: Principal, request: ChatRequest, catalogue: Models): Candidates | Problem => {
  const ids = [...new Set([request.model, ...request.models])]
  for (const [index, id] of ids.entries()) {
    if (!mayUseModel(key, id))
      return CallFault.modelNotAllowed(id, index === 0 ? "model" : `models[${request.models.indexOf(id)}]`)
  }
  const primary = ids.map((id) => catalogue.get(id)).filter((model) => model !== undefined)
  if (primary.length === 0) return unknownModel(request.model, catalogue)
  if (request.imageCount === 0 || !primary.every(isBlind))
    return { collection: undefined, autoRoute: false, vision: [], primary }
  return CallFault.invalidRequest(new RequestFault("messages", `${request.model} does not take images`))
}

/** By the upstream's list. If it does not say what a model takes, the model decides. */
const isBlind = ({ isVision, takesAnything }: CatalogueModel): boolean => !isVision && takesAnything !== true

/** As long as there has never been a list of models, this one may exist. */
export const unknownModel = (requested: string, catalogue: Pick<Models, "status">): Problem =>
  catalogue.status().fetchedAt === undefined
    ? CallFault.noAvailableModel("The list of models could not be fetched yet", noListRetrySeconds)
    : CallFault.modelNotFound(requested)

/** A list that could not be fetched is tried for again within seconds. */
const noListRetrySeconds = 10

/** Source: contract/llm#collections, contract/llm#vision. */
const membersOf = (
  collection: CollectionRow,
  members: ReadonlyArray<CatalogueModel>,
  request: ChatRequest
): Candidates | Problem => {
  const autoRoute = collection.auto_route
  const capable = autoRoute && request.hasTools ? members.filter(({ hasTools }) => hasTools) : members
  if (capable.length === 0)
    return CallFault.invalidRequest(new RequestFault("tools", `no member of ${request.model} can call tools`))
  if (request.imageCount > 0 && members.every(isBlind))
    return CallFault.invalidRequest(
      new RequestFault("messages", `no member of ${request.model} takes images`)
    )
  const seeing = members.filter(({ isVision }) => isVision)
  const writing = capable.filter(({ isVision }) => !isVision)
  const isStaged = request.imageCount > 0 && seeing.length > 0 && writing.length > 0
  const vision = isStaged ? seeing : []
  const withImages = capable.filter(({ isVision }) => isVision)
  const primary = isStaged ? writing : request.imageCount > 0 && withImages.length > 0 ? withImages : capable
  const all = { collection, autoRoute, vision, primary }
  // Without auto-route only the first one is asked.
  return autoRoute ? all : { ...all, vision: vision.slice(0, 1), primary: primary.slice(0, 1) }
}
