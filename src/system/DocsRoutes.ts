import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type HttpApi, HttpApiScalar, OpenApi } from "effect/http-api"

const openapiPath = "/openapi.json"
const docsPath = "/docs"

/** What these routes add to the known paths of the API. */
export const paths = [
  ["GET", openapiPath],
  ["GET", docsPath]
] as const

/** The page keeps to this server: no fonts, tools, telemetry or client of the page's maker. */
const scalar = {
  authentication: { preferredSecurityScheme: "apiKey" },
  withDefaultFonts: false,
  showDeveloperTools: "never",
  hideClientButton: true,
  telemetry: false
}

/** The contract, for programs and for people. The page's script is part of the answer: no CDN is asked. */
export const layerOf = (api: HttpApi.Top) =>
  Layer.mergeAll(
    HttpRouter.add("GET", openapiPath, HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))),
    HttpApiScalar.layer(api, { path: docsPath, scalar })
  )
