import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { isNoneMatch } from "#src/http/ByteRanges.ts"
import { type EncodedBody, encodedBody, encodingFor } from "#src/http/ContentEncoding.ts"
import { serverUrl, serverUrlFor } from "#src/ServerUrl.ts"

/** The paths that these routes add to those of the API. */
export const paths = [
  ["GET", "/a.js"],
  ["GET", "/scripts/beacon.mjs"],
  ["GET", "/scripts/beacon.py"],
  ["GET", "/scripts/beacon.php"]
] as const

const home = normalize(join(import.meta.dirname, "../../clients/beacon"))

const textOf = (name: string): string => readFileSync(join(home, name), "utf8")

/**
 * An hour for the copy that is used unasked. For a week more a returning visitor still waits for nothing: the old copy
 * counts this page while the new one is fetched for the next. Both talk to `/api/event` in the same way.
 */
const pageScriptCaching = "public, max-age=3600, stale-while-revalidate=604800"

const javascript = "text/javascript; charset=utf-8"
/** Source code for people and for `curl`, that no server in between or browser runs. */
const plain = "text/plain; charset=utf-8"

/** The address that a client has in its source, in quotes and once. */
const ownAddress = /(?<=["'])http:\/\/127\.0\.0\.1:8080(?=["'])/

/**
 * The source with the address in its place. Origin and path of a URL have no double quote and no backslash; where the
 * text is in single quotes (in PHP, where `$` means something in double ones) that quote is escaped.
 */
export const clientFrom = (source: string, url: string): string => {
  const { origin, pathname } = new URL(url)
  const address = `${origin}${pathname}`.replace(/\/+$/, "")
  const [before = "", after, ...more] = source.split(ownAddress)
  if (after === undefined || more.length > 0)
    throw new Error("a client has no address to replace, or several")
  return before + (before.endsWith("'") ? address.replaceAll("'", "\\'") : address) + after
}

interface Served {
  readonly contentType: string
  readonly caching: string
}

type Answer = (request: HttpServerRequest.HttpServerRequest) => HttpServerResponse.HttpServerResponse

/** `body`: the content in each encoding that it is offered in. */
const answerOf = (content: string, body: Partial<EncodedBody>, { caching, contentType }: Served): Answer => {
  // Weak, because one version is one tag in every encoding.
  const version = `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`
  const headers = {
    etag: `W/${version}`,
    vary: "Accept-Encoding",
    "cache-control": caching,
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
    "x-content-type-options": "nosniff"
  }
  return (request) => {
    if (isNoneMatch(request.headers["if-none-match"], version))
      return HttpServerResponse.empty({ status: 304, headers })
    const encoding = encodingFor(request.headers["accept-encoding"])
    const encoded = encoding === "identity" ? undefined : body[encoding]
    return HttpServerResponse.uint8Array(encoded ?? Buffer.from(content), {
      contentType,
      headers: encoded === undefined ? headers : { ...headers, "content-encoding": encoding }
    })
  }
}

/** In all encodings, packed once. */
const packed = (content: string, served: Served): Answer =>
  answerOf(content, encodedBody(Buffer.from(content)), served)

const route = (path: (typeof paths)[number][1], answer: Answer) =>
  HttpRouter.add("GET", path, Effect.map(HttpServerRequest.HttpServerRequest, answer))

/** The page script, and the clients for servers, which know this server's address. Source: contract/http#cors. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const own = yield* serverUrl
    const urlFor = yield* serverUrlFor
    const client = (name: string, contentType: string): Answer => {
      const source = textOf(name)
      const served = { contentType, caching: "no-cache" }
      const usual = packed(clientFrom(source, own), served)
      return (request) => {
        const url = urlFor(request)
        // A proxy's names may be many: a script made for one is neither compressed nor kept.
        return url === own ? usual(request) : answerOf(clientFrom(source, url), {}, served)(request)
      }
    }
    const page = { contentType: javascript, caching: pageScriptCaching }
    return Layer.mergeAll(
      route("/a.js", packed(textOf("a.min.js"), page)),
      route("/scripts/beacon.mjs", client("beacon.mjs", javascript)),
      route("/scripts/beacon.py", client("beacon.py", plain)),
      route("/scripts/beacon.php", client("beacon.php", plain))
    )
  })
)
