import { Effect, Layer } from "effect"
import { readFileSync } from "node:fs"
import { join, normalize } from "node:path"
import { packed, type StaticAnswer, staticAnswer, type StaticBodies, staticRoute } from "#src/http/Static.ts"
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

/** Any page may load it; a proxy that packs a body leaves its version as it is. */
const openAnswer = (bodies: StaticBodies, contentType: string, caching: string): StaticAnswer =>
  staticAnswer({
    bodies,
    contentType,
    caching,
    hasOneTag: true,
    headers: { "access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin" }
  })

/** The page script, and the clients for servers, which know this server's address. Source: contract/http#cors. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const own = yield* serverUrl
    const urlFor = yield* serverUrlFor
    const client = (name: string, contentType: string): StaticAnswer => {
      const source = textOf(name)
      const usual = openAnswer(packed(clientFrom(source, own)), contentType, "no-cache")
      return (request) => {
        const url = urlFor(request)
        if (url === own) return usual(request)
        // A proxy's names may be many: a script made for one is neither compressed nor kept.
        const identity = Buffer.from(clientFrom(source, url))
        return openAnswer({ identity }, contentType, "no-cache")(request)
      }
    }
    return Layer.mergeAll(
      staticRoute("/a.js", openAnswer(packed(textOf("a.min.js")), javascript, pageScriptCaching)),
      staticRoute("/scripts/beacon.mjs", client("beacon.mjs", javascript)),
      staticRoute("/scripts/beacon.py", client("beacon.py", plain)),
      staticRoute("/scripts/beacon.php", client("beacon.php", plain))
    )
  })
)
