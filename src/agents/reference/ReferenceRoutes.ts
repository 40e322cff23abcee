import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { protocolSchema } from "./ProtocolSchema.ts"
import { referencePage } from "./ReferencePage.ts"

/** What these routes add to the known paths of the API. */
export const paths = [
  ["GET", "/docs/agent"],
  ["GET", "/docs/agent.json"]
] as const

const page = normalize(join(import.meta.dirname, "../../console/page/style"))

/** The look of the page at `/`: its colours, its letters, its head. */
const readStyle = (): string =>
  [join(page, "Base.css"), join(page, "Layout.css"), join(import.meta.dirname, "Reference.css")]
    .map((file) => readFileSync(file, "utf8"))
    .join("\n")

const answerPage = () => {
  const style = readStyle()
  const hash = createHash("sha256").update(style).digest("base64")
  return HttpServerResponse.text(referencePage(style), {
    contentType: "text/html; charset=utf-8",
    headers: {
      "cache-control": "no-cache",
      "content-security-policy": `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer"
    }
  })
}

/** The reference of the agent protocol, for people and for programs: made from the schemas, once. */
export const layer = Layer.suspend(() =>
  Layer.mergeAll(
    HttpRouter.add("GET", "/docs/agent", answerPage()),
    HttpRouter.add(
      "GET",
      "/docs/agent.json",
      HttpServerResponse.jsonUnsafe(protocolSchema(), { headers: { "cache-control": "no-cache" } })
    )
  )
)
