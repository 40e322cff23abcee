import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { CollectionRow } from "#schemas/llm/Collection.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import type { AgentBilling, AgentModel } from "#schemas/agents/ServerFrame.ts"
import { Catalogue } from "./catalogue/Catalogue.ts"
import type { CatalogueModel } from "./catalogue/CatalogueModel.ts"
import { CollectionDirectory, slugKey } from "./catalogue/CollectionDirectory.ts"
import { type Funds, makeKeyFunds } from "./ledger/Funds.ts"
import { collectionPrefix, mayUseCollection, mayUseModel } from "./calls/Candidates.ts"

/** The models that a key's agents may run, and the way each is paid. Source: contract/agents#gateway-info. */
export class ModelAccess extends Context.Service<
  ModelAccess,
  {
    /** tool-capable models that the key may run, collections with such a member last */
    readonly models: (key: Principal) => ReadonlyArray<AgentModel>
    readonly modelOf: (key: Principal, id: string) => AgentModel | "forbidden" | "unknown"
    /** the first that the key can pay for, else a free one; undefined: there is none */
    readonly defaultModel: (key: Principal) => Effect.Effect<AgentModel | undefined, SqlError>
    readonly billing: (key: Principal, model?: string) => Effect.Effect<AgentBilling, SqlError>
    /** whether a model that would answer takes images */
    readonly seesImages: (key: Principal, model: string) => boolean
    /** whether it takes a thinking level; a model that routes may pass it on */
    readonly mayThink: (model: string) => boolean
    /**
     * Output tokens that an amount (pico-USD) pays for at most, behind a prompt of so many tokens. undefined: as many as
     * the model likes.
     */
    readonly affordable: (
      key: Principal,
      model: string,
      promptTokens: number,
      amount: bigint
    ) => number | undefined
    /** false: neither an allowance, nor a balance, nor a permitted free model is there (402) */
    readonly mayStart: (key: Principal) => Effect.Effect<boolean, SqlError>
  }
>()("signalbox/agents/ModelAccess") {
  static readonly layer = Layer.effect(
    ModelAccess,
    Effect.gen(function* () {
      const catalogue = yield* Catalogue
      const collections = yield* CollectionDirectory
      const keyFunds = yield* makeKeyFunds
      const models = new EligibleModels(catalogue, collections)
      const payable = (key: Principal, funds: Funds) =>
        models.first(key, (eligible) => pays(funds, eligible) !== undefined)
      return ModelAccess.of({
        models: (key) => models.all(key).map(({ model }) => model),
        modelOf: (key, id) => models.one(key, id),
        defaultModel: (key) => Effect.map(keyFunds.of(key), (funds) => payable(key, funds)?.model),
        seesImages: (key, id) => models.eligible(key, id)?.members.some(({ isVision }) => isVision) ?? true,
        mayThink: (id) => catalogue.get(id)?.supportedParameters.includes("reasoning") ?? true,
        affordable: (key, id, promptTokens, amount) => {
          const members = models.eligible(key, id)?.members ?? []
          const bounds = members.map((model) => tokensFor(model, promptTokens, amount))
          return bounds.reduce<number | undefined>(least, undefined)
        },
        mayStart: (key) => {
          if (keyFunds.hadSome(key) || models.hasFree(key)) return Effect.succeed(true)
          return Effect.map(
            keyFunds.of(key),
            // A key with funds and no model for them gets that as the answer to its hello.
            (funds) => funds.hasAllowance || funds.hasCredits || payable(key, funds) !== undefined
          )
        },
        billing: (key, id) =>
          Effect.map(keyFunds.of(key), (funds): AgentBilling => {
            const eligible = id === undefined ? payable(key, funds) : models.eligible(key, id)
            const plan = funds.subscription?.plan
            return {
              mode: (eligible && pays(funds, eligible)) ?? "credits",
              plan: plan?.name ?? null,
              covers_direct_api: plan?.covers_direct_api ?? false
            }
          })
      })
    })
  )
}

/** A model to choose, with the models that would answer. */
interface EligibleModel {
  readonly model: AgentModel
  readonly members: ReadonlyArray<CatalogueModel>
}

class EligibleModels {
  readonly #catalogue: Catalogue["Service"]
  readonly #collections: CollectionDirectory["Service"]

  constructor(catalogue: Catalogue["Service"], collections: CollectionDirectory["Service"]) {
    this.#catalogue = catalogue
    this.#collections = collections
  }

  all(key: Principal): ReadonlyArray<EligibleModel> {
    const models = this.#catalogue.all().filter(({ hasTools, id }) => hasTools && mayUseModel(key, id))
    return [...models.map(eligibleOf), ...this.#ofCollections(key)]
  }

  /** Collections are left out: see `first`. */
  hasFree(key: Principal): boolean {
    return this.#catalogue
      .all()
      .some(({ hasTools, id, isFree }) => isFree && hasTools && mayUseModel(key, id))
  }

  /** Collections are considered when no model will do: all users' are in one list. */
  first(key: Principal, isWanted: (eligible: EligibleModel) => boolean): EligibleModel | undefined {
    for (const model of this.#catalogue.all()) {
      if (!model.hasTools || !mayUseModel(key, model.id)) continue
      const eligible = eligibleOf(model)
      if (isWanted(eligible)) return eligible
    }
    return this.#ofCollections(key).find(isWanted)
  }

  eligible(key: Principal, id: string): EligibleModel | undefined {
    if (id.startsWith(collectionPrefix)) {
      const slug = id.slice(collectionPrefix.length)
      const collection = this.#collections.by("slug", slugKey(key.ownerId, slug))
      return collection === undefined ? undefined : this.#eligibleOfCollection(key, collection)
    }
    const model = this.#catalogue.get(id)
    return model === undefined || !mayUseModel(key, id) ? undefined : eligibleOf(model)
  }

  /** Scope comes before existence: a key cannot find out about models beyond its scope. */
  one(key: Principal, id: string): AgentModel | "forbidden" | "unknown" {
    const eligible = this.eligible(key, id)
    if (eligible !== undefined)
      return eligible.members.some(({ hasTools }) => hasTools) ? eligible.model : "unknown"
    const isCollection = id.startsWith(collectionPrefix)
    const mayKnow = isCollection ? key.collections === null && key.models === null : mayUseModel(key, id)
    return mayKnow ? "unknown" : "forbidden"
  }

  #ofCollections(key: Principal): ReadonlyArray<EligibleModel> {
    return Array.from(this.#collections.all())
      .filter(({ user_id }) => user_id === key.ownerId)
      .map((collection) => this.#eligibleOfCollection(key, collection))
      .filter((eligible) => eligible !== undefined)
  }

  #eligibleOfCollection(key: Principal, collection: CollectionRow): EligibleModel | undefined {
    if (!mayUseCollection(key, collection.id)) return undefined
    const { auto_route, models } = collection
    const there = models.map((id) => this.#catalogue.get(id)).filter((model) => model !== undefined)
    // Without auto-route the first one answers, with its abilities alone.
    const members = (auto_route ? there : there.slice(0, 1)).filter(({ hasTools }) => hasTools)
    return members.length === 0 ? undefined : eligibleOfCollection(collection, members)
  }
}

const eligibleOf = (model: CatalogueModel): EligibleModel => ({
  model: { id: model.id, name: model.name, context_length: model.contextLength },
  members: [model]
})

/** Any member may answer and has to hold the conversation: the smallest window counts. */
const eligibleOfCollection = (
  { name, slug }: CollectionRow,
  members: ReadonlyArray<CatalogueModel>
): EligibleModel => ({
  model: {
    id: `${collectionPrefix}${slug}`,
    name,
    context_length: Math.min(...members.map(({ contextLength }) => contextLength))
  },
  members
})

/** The means that would pay a call; undefined: none. */
const pays = (funds: Funds, { members }: EligibleModel): AgentBilling["mode"] | undefined => {
  if (members.every(({ isFree }) => isFree)) return "free"
  const covered = funds.subscription?.plan.models
  const isCovered = covered === "*" || members.every(({ id }) => covered?.includes(id) === true)
  if (funds.hasAllowance && isCovered) return "subscription"
  return funds.hasCredits ? "credits" : undefined
}

const tokensFor = ({ maxCompletionTokens, prices }: CatalogueModel, promptTokens: number, amount: bigint) => {
  // Only the upstream knows its cost.
  if (prices === undefined) return amount > 0n ? undefined : 0
  const left = Number(amount) - promptTokens * picoOf(prices.prompt)
  const tokens = Math.max(0, Math.floor(left / picoOf(prices.completion)))
  return tokens < (maxCompletionTokens ?? Infinity) ? tokens : undefined
}

const picoOf = (price: Decimal.Decimal): number => Number(Decimal.format(price)) * 1e12

const least = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
