import { existsSync, readdirSync, readFileSync } from "node:fs"
import { extname, join, normalize } from "node:path"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { pageHeaders, type StaticAnswer, staticAnswer } from "#src/http/Static.ts"

/** Additions of these routes to the known paths of the API. */
export const paths = [
  ["GET", "/"],
  ["GET", "/login"],
  ["GET", "/console/:file"]
] as const

/** The output directory of `deploy/setup/console.mjs`. */
const home = normalize(join(import.meta.dirname, "../../.runtime/console"))

/** The name of the page itself. */
const pageName = "index.html"

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8"
}

/**
 * The page connects to this server only, runs its own script only, and is nothing for a search engine. It shows files of
 * its user: images, sound and film, and documents in frames.
 */
const headers = {
  ...pageHeaders(
    "script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; media-src 'self'; frame-src 'self'"
  ),
  "x-robots-tag": "noindex"
}

const year = 365 * 24 * 60 * 60

/** Reads the built page by the names of its files: some fifty kilobytes, in three encodings. Undefined where it was not built. */
const readPage = (directory: string): ReadonlyMap<string, StaticAnswer> | undefined => {
  if (!existsSync(join(directory, pageName))) return undefined
  const files = new Map<string, StaticAnswer>()
  for (const name of readdirSync(directory)) {
    const contentType = contentTypes[extname(name)]
    if (contentType === undefined) continue
    const bytes = (suffix: string) => readFileSync(join(directory, `${name}${suffix}`))
    const bodies = { identity: bytes(""), gzip: bytes(".gz"), br: bytes(".br") }
    // The other names change with their content.
    const caching = name === pageName ? "no-cache" : `public, max-age=${year}, immutable`
    files.set(name, staticAnswer({ bodies, contentType, caching, headers }))
  }
  return files
}

const notFound = HttpServerResponse.jsonUnsafe({ error: "Not found" }, { status: 404 })

const howToBuild =
  "The page at / is not built. Run `node deploy/setup.mjs install`, then start the server again"

const notBuilt = HttpServerResponse.text(`${howToBuild}.\nThe API is not affected; see /docs.\n`, {
  status: 503
})

/** The page at `/`, and at `/login` for login links. If it was not built, the start logs the command that builds it, and everything else is served. */
export const layerFrom = (directory = home) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const files = readPage(directory)
      if (files === undefined) yield* Effect.logWarning(howToBuild)
      const answer = (name: string) =>
        Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
          files === undefined ? notBuilt : (files.get(name)?.(request) ?? notFound)
        )
      return Layer.mergeAll(
        HttpRouter.add("GET", "/", answer(pageName)),
        HttpRouter.add("GET", "/login", answer(pageName)),
        HttpRouter.add(
          "GET",
          "/console/:file",
          Effect.flatMap(HttpRouter.params, ({ file = "" }) => answer(file))
        )
      )
    })
  )

export const layer = layerFrom()
