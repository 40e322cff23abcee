import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { staticAnswer } from "#src/http/StaticAnswer.ts"
import { type ConsoleFile, type ConsoleFiles, pageName, readConsoleFiles } from "./ConsoleFiles.ts"

/** Additions of these routes to the known paths of the API. */
export const paths = [
  ["GET", "/"],
  ["GET", "/console/:file"]
] as const

/** The page connects to this server only, runs its own script only, and cannot be framed. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const year = 365 * 24 * 60 * 60

const headersOf = ({ isHashed }: ConsoleFile): Record<string, string> => ({
  "cache-control": isHashed ? `public, max-age=${year}, immutable` : "no-cache",
  "content-security-policy": contentSecurityPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer"
})

const notFound = HttpServerResponse.jsonUnsafe({ error: "Not found" }, { status: 404 })

const howToBuild =
  "The page at / is not built. Run `node deploy/setup.mjs install`, then start the server again"

const notBuilt = HttpServerResponse.text(`${howToBuild}.\nThe API is not affected; see /docs.\n`, {
  status: 503
})

const routes = (files: ConsoleFiles | undefined) => {
  const answerFile = (name: string) =>
    Effect.suspend(() => {
      if (files === undefined) return Effect.succeed(notBuilt)
      const file = files.file(name)
      if (file === undefined) return Effect.succeed(notFound)
      return staticAnswer(file.bodies, { contentType: file.contentType, headers: headersOf(file) })
    })
  return Layer.mergeAll(
    HttpRouter.add("GET", "/", answerFile(pageName)),
    HttpRouter.add(
      "GET",
      "/console/:file",
      Effect.flatMap(HttpRouter.params, ({ file = "" }) => answerFile(file))
    )
  )
}

/** The page at `/`. If it was not built, the start logs the command that builds it, and everything else is served. */
export const layerFrom = (directory?: string) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const files = readConsoleFiles(directory)
      if (files === undefined) yield* Effect.logWarning(howToBuild)
      return routes(files)
    })
  )

export const layer = layerFrom()
