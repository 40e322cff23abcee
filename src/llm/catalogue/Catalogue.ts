import { Context, Effect, Layer } from "effect"
import { CatalogueUnavailable, CatalogueSource } from "#actors/llm/CatalogueSource.ts"
import type { ListedModel } from "#streams/llm/UpstreamList.ts"
import { markupPercentDefault } from "#schemas/llm/Markup.ts"
import { AppConfig } from "#src/Config.ts"
import type { CatalogueModel } from "./CatalogueModel.ts"
import { markupFactorOf, offeredModel, providerOf } from "./CataloguePrices.ts"
import { MarkupDirectory } from "./MarkupDirectory.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"
import type { CatalogueStatus } from "#actors/llm/CatalogueMirror.ts"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"
import * as CatalogueMirror from "#actors/llm/CatalogueMirror.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import * as CatalogueTable from "./CatalogueTable.ts"

/** The list of models is that of the upstream's `GET /models`. */
const upstreamSource = Layer.effect(
  CatalogueSource,
  Effect.gen(function* () {
    const upstream = yield* Upstream
    const { limits } = yield* AppConfig
    const options = { maxBytes: limits.catalogueBytes, timeoutMillis: limits.catalogueFetchMillis }
    return CatalogueSource.of({
      fetch: Effect.matchEffect(
        Effect.suspend(() => upstream.get("/models", options)),
        {
          onFailure: ({ problem }) => Effect.fail(new CatalogueUnavailable({ problem })),
          onSuccess: ({ status, text }) =>
            status === 200
              ? Effect.succeed(text)
              : Effect.fail(new CatalogueUnavailable({ problem: `the upstream answered ${status}` }))
        }
      )
    })
  })
)

/**
 * The upstream's models with this server's prices, in memory. The list is fetched at the start and every 3 hours, and the
 * last good one counts through an outage. Source: contract/llm#models-list.
 */
export class Catalogue extends Context.Service<
  Catalogue,
  {
    /** with the prices of this moment; a call keeps those of its admission */
    readonly get: (id: string) => CatalogueModel | undefined
    /** in the upstream's order */
    readonly all: () => ReadonlyArray<CatalogueModel>
    readonly status: () => CatalogueMirror.CatalogueStatus
    readonly refresh: Effect.Effect<void, CatalogueUnavailable>
  }
>()("signalbox/llm/Catalogue") {
  /** Over a source of lists and a store of copies. */
  static readonly layerNoDeps = Layer.effect(
    Catalogue,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const markups = yield* MarkupDirectory
      const mirror = yield* CatalogueMirror.make({
        refreshMillis: limits.catalogueRefreshMillis,
        retryMinMillis: limits.catalogueRetryMinMillis,
        retryMaxMillis: limits.catalogueRetryMaxMillis,
        startMillis: limits.catalogueStartMillis
      })
      const offers = new Offers(mirror.current, (provider) => markups.get(provider)?.percent)
      return Catalogue.of({
        get: (id) => offers.get(id),
        all: () => offers.all(),
        status: mirror.status,
        refresh: mirror.refresh
      })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide([upstreamSource, CatalogueTable.layer]))
}

const factorOf = (percent: number): Decimal.Decimal =>
  markupFactorOf(Decimal.fromNumber(percent) ?? Decimal.zero)

interface Offer {
  readonly listed: ListedModel
  /** the percentage that is in the prices */
  percent: number
  model: CatalogueModel
}

/**
 * Prices a model anew on a request for it if its provider's markup has changed since: so a change holds from the moment
 * at which the markup is known here, without any message.
 */
class Offers {
  readonly #current: () => CatalogueMirror.MirroredList | undefined
  readonly #percentOf: (provider: string) => number | undefined
  #list: CatalogueMirror.MirroredList | undefined
  #offers: ReadonlyMap<string, Offer> = new Map()

  constructor(
    current: () => CatalogueMirror.MirroredList | undefined,
    percentOf: (provider: string) => number | undefined
  ) {
    this.#current = current
    this.#percentOf = percentOf
  }

  get(id: string): CatalogueModel | undefined {
    const offer = this.#offersNow().get(id)
    return offer === undefined ? undefined : this.#priced(offer)
  }

  all(): ReadonlyArray<CatalogueModel> {
    return Array.from(this.#offersNow().values(), (offer) => this.#priced(offer))
  }

  #offersNow(): ReadonlyMap<string, Offer> {
    const list = this.#current()
    if (list !== this.#list) {
      this.#list = list
      this.#offers = new Map(list?.models.map((listed) => [listed.id, this.#offer(listed)]))
    }
    return this.#offers
  }

  #offer(listed: ListedModel): Offer {
    const percent = this.#percentOf(providerOf(listed.id)) ?? markupPercentDefault
    return { listed, percent, model: offeredModel(listed, factorOf(percent)) }
  }

  #priced(offer: Offer): CatalogueModel {
    const percent = this.#percentOf(offer.model.provider) ?? markupPercentDefault
    if (percent !== offer.percent) offer.model = offeredModel(offer.listed, factorOf(percent))
    offer.percent = percent
    return offer.model
  }
}

/** A list that is too old is reported and nothing more: its models are still used, at its prices. */
const listState = ({ fetchedAt, models, problem }: CatalogueStatus): ComponentState => {
  const served = fetchedAt === undefined ? "no models" : `${models} models of ${fetchedAt.toISOString()}`
  return problem === undefined
    ? { status: "up", detail: served }
    : { status: "degraded", detail: `${served}; the upstream's list cannot be fetched: ${problem}` }
}

/** The line "catalogue" of `/readyz`. */
export const catalogueReadiness = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const { status } = yield* Catalogue
    yield* register(
      "catalogue",
      Effect.sync(() => listState(status()))
    )
  })
)
