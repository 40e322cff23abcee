import { Layer } from "effect"
import type { HttpApi } from "effect/http-api"
import { documentRoute, referenceRoute } from "#src/docs/page/ReferencePage.ts"
import packageJson from "../../package.json" with { type: "json" }
import { apiPage } from "./api/ApiPage.ts"
import { documentOf } from "./api/Operations.ts"

const openapiPath = "/openapi.json"
const indexPath = "/api/v1"
const docsPath = "/docs"

/** The start page, named by the start message: links to the rest of the documentation. */
const index = {
  name: "signalbox",
  version: packageJson.version,
  docs: docsPath,
  openapi: openapiPath,
  agent_docs: "/docs/agent",
  health: "/healthz"
}

/** The paths that these routes add to those of the API. */
export const paths = [
  ["GET", indexPath],
  ["GET", openapiPath],
  ["GET", docsPath]
] as const

/** The contract, for programs and for people. */
export const layerOf = (api: HttpApi.Top) =>
  Layer.mergeAll(
    documentRoute(indexPath, () => index),
    documentRoute(openapiPath, () => documentOf(api)),
    referenceRoute(docsPath, () => apiPage(documentOf(api)))
  )
