import { Effect, Layer } from "effect"
import { CatalogueSource, CatalogueUnavailable } from "#actors/llm/CatalogueSource.ts"
import { AppConfig } from "#src/Config.ts"
import { Upstream } from "#src/infra/upstream/Upstream.ts"

/** The list of models is that of the upstream's `GET /models`. */
export const layer = Layer.effect(
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
