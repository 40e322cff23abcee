import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { isNoneMatch } from "#src/infra/http/ByteRanges.ts"
import { encodedBody, encodingFor } from "#src/infra/http/ContentEncoding.ts"
import { serverUrl } from "#src/ServerUrl.ts"

/** What these routes add to the known paths of the API. */
export const paths = [
  ["GET", "/a.js"],
  ["GET", "/scripts/beacon.mjs"],
  ["GET", "/scripts/beacon.py"],
  ["GET", "/scripts/beacon.php"]
] as const

const home = normalize(join(import.meta.dirname, "../clients/beacon"))

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
  readonly path: (typeof paths)[number][1]
  readonly content: string
  readonly contentType: string
  readonly caching: string
}

const route = ({ caching, content, contentType, path }: Served) => {
  const body = encodedBody(Buffer.from(content))
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
  const answer = (request: HttpServerRequest.HttpServerRequest): HttpServerResponse.HttpServerResponse => {
    if (isNoneMatch(request.headers["if-none-match"], version))
      return HttpServerResponse.empty({ status: 304, headers })
    const encoding = encodingFor(request.headers["accept-encoding"])
    return HttpServerResponse.uint8Array(body[encoding], {
      contentType,
      headers: encoding === "identity" ? headers : { ...headers, "content-encoding": encoding }
    })
  }
  return HttpRouter.add("GET", path, Effect.map(HttpServerRequest.HttpServerRequest, answer))
}

/** The page script, and the clients for servers, which know this server's address. Source: decisions, Common (CORS). */
export const layer = Layer.unwrap(
  Effect.map(serverUrl, (url) => {
    const client = (name: string): string => clientFrom(textOf(name), url)
    const caching = "no-cache"
    return Layer.mergeAll(
      route({
        path: "/a.js",
        content: textOf("a.min.js"),
        contentType: javascript,
        caching: pageScriptCaching
      }),
      route({
        path: "/scripts/beacon.mjs",
        content: client("beacon.mjs"),
        contentType: javascript,
        caching
      }),
      route({ path: "/scripts/beacon.py", content: client("beacon.py"), contentType: plain, caching }),
      route({ path: "/scripts/beacon.php", content: client("beacon.php"), contentType: plain, caching })
    )
  })
)
