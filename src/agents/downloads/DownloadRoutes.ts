import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { answerBytes } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import { fileBytes } from "#src/http/FileBytes.ts"
import { serverUrlFor } from "#src/ServerUrl.ts"
import { AgentDownloads, type StoredDownload } from "../AgentDownloads.ts"
import { installScript } from "./InstallScript.ts"

/** Additions of these routes to the known paths of the API. No key is needed: an installing client has none yet. */
export const paths = [
  ["GET", "/agent/install.sh"],
  ["GET", "/api/v1/agent/downloads/:filename"]
] as const

const notFound = HttpServerResponse.jsonUnsafe({ error: "Not found" }, { status: 404 })

const answer = (download: StoredDownload, request: HttpServerRequest.HttpServerRequest) =>
  answerBytes(
    request,
    {
      sizeBytes: download.sizeBytes,
      contentType: download.filename.endsWith(".gz") ? "application/gzip" : "text/javascript; charset=utf-8",
      etag: `"${download.sha256}"`,
      headers: {
        "content-disposition": contentDisposition("attachment", download.filename),
        "x-content-type-options": "nosniff",
        // no-transform: files that are checked against a SHA-256 must not be packed or unpacked on the way.
        "cache-control": "public, no-cache, no-transform"
      }
    },
    (range) => Effect.succeed(fileBytes(download.file, range))
  )

/** The builds of the client, and the script that installs one. Source: contract/agents#downloads. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const downloads = yield* AgentDownloads
    const urlFor = yield* serverUrlFor
    return Layer.mergeAll(
      HttpRouter.add(
        "GET",
        "/agent/install.sh",
        Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
          HttpServerResponse.text(installScript(urlFor(request), downloads.list()), {
            contentType: "text/plain; charset=utf-8",
            headers: { "cache-control": "no-cache, no-transform", "x-content-type-options": "nosniff" }
          })
        )
      ),
      HttpRouter.add(
        "GET",
        "/api/v1/agent/downloads/:filename",
        Effect.gen(function* () {
          const { filename = "" } = yield* HttpRouter.params
          const download = downloads.find(filename)
          if (download === undefined) return notFound
          return yield* answer(download, yield* HttpServerRequest.HttpServerRequest)
        })
      )
    )
  })
)
