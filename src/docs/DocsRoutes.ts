import { Layer } from "effect"
import type { HttpApi } from "effect/http-api"
import { documentRoute, referenceRoute } from "#src/docs/page/ReferencePage.ts"
import packageJson from "../../package.json" with { type: "json" }
import { apiPage } from "./api/ApiPage.ts"
import { documentOf } from "./api/Operations.ts"

const openapiPath = "/openapi.json"
const indexPath = "/api/v1"

/** The start page, named by the start message: links to the rest of the documentation. */
const index = {
  name: "signalbox",
  version: packageJson.version,
  docs: "/docs",
  openapi: openapiPath,
  agent_docs: "/docs/agent",
  health: "/healthz"
}

/** The paths that these routes add to those of the API. */
export const paths = [
  ["GET", indexPath],
  ["GET", openapiPath],
  ["GET", "/docs"]
] as const

/** The contract, for programs and for people, made once. */
export const layerOf = (api: HttpApi.Top) =>
  Layer.suspend(() => {
    const document = documentOf(api)
    return Layer.mergeAll(
      documentRoute(indexPath, index),
      documentRoute(openapiPath, document),
      referenceRoute(apiPage(document))
    )
  })
