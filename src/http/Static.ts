import { createHash } from "node:crypto"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { isNoneMatch } from "./ByteRanges.ts"

/** The encoding of a body. Source: RFC 9110, 8.4. */
type Encoding = "br" | "gzip" | "identity"

/** A body in each encoding that it is offered in. */
export type StaticBodies = { readonly identity: Uint8Array } & Partial<Readonly<Record<Encoding, Uint8Array>>>

/** An answer that changes with the program alone. */
interface StaticContent {
  readonly bodies: StaticBodies
  readonly contentType: string
  /** `Cache-Control` */
  readonly caching: string
  readonly headers?: Readonly<Record<string, string>>
  /** One weak entity tag for all encodings, in place of a strong one for each. */
  readonly hasOneTag?: boolean
}

export type StaticAnswer = (
  request: HttpServerRequest.HttpServerRequest
) => HttpServerResponse.HttpServerResponse

/** Brotli's best takes a second for the documents of the API, which the first request waits for, and saves a twelfth of the next best. */
const smallBytes = 4_096

/** A body in every encoding, each made where it is asked for: for an answer that is made once and sent often. */
export const packed = (text: string): StaticBodies => {
  const identity = Buffer.from(text)
  return {
    identity,
    get gzip() {
      return gzipSync(identity, { level: constants.Z_BEST_COMPRESSION })
    },
    get br() {
      return brotliCompressSync(identity, {
        params: {
          [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
          [constants.BROTLI_PARAM_QUALITY]: identity.length > smallBytes ? 9 : constants.BROTLI_MAX_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: identity.length
        }
      })
    }
  }
}

/**
 * The smallest encoding that the caller takes: one that is named, or covered by `*`, without `q=0`. Other weights are
 * not compared; a caller that takes both gets the smaller. Source: RFC 9110, 12.5.3.
 */
export const encodingFor = (acceptEncoding: string | undefined): Encoding => {
  const taken = new Map<string, boolean>()
  for (const part of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim())
    taken.set(name, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)))
  }
  const isTaken = (name: string): boolean => taken.get(name) ?? taken.get("*") ?? false
  return isTaken("br") ? "br" : isTaken("gzip") ? "gzip" : "identity"
}

const tagOf = (bytes: Uint8Array): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`

/** The body in the smallest encoding that the request takes, made at the first such request; 304 where its sender has it. */
export const staticAnswer = ({
  bodies,
  caching,
  contentType,
  hasOneTag = false,
  headers: own
}: StaticContent): StaticAnswer => {
  const offer = (named: Encoding) => {
    const body = bodies[named]
    const encoding = body === undefined ? "identity" : named
    const bytes = body ?? bodies.identity
    const tag = tagOf(hasOneTag ? bodies.identity : bytes)
    const headers = {
      ...own,
      etag: hasOneTag ? `W/${tag}` : tag,
      vary: "Accept-Encoding",
      "cache-control": caching,
      "x-content-type-options": "nosniff"
    }
    return { encoding, bytes, tag, headers }
  }
  const offered: Partial<Record<Encoding, ReturnType<typeof offer>>> = {}
  return (request) => {
    const wanted = encodingFor(request.headers["accept-encoding"])
    const { bytes, encoding, headers, tag } = (offered[wanted] ??= offer(wanted))
    if (isNoneMatch(request.headers["if-none-match"], tag)) {
      return HttpServerResponse.empty({ status: 304, headers })
    }
    return HttpServerResponse.uint8Array(bytes, {
      contentType,
      headers: encoding === "identity" ? headers : { ...headers, "content-encoding": encoding }
    })
  }
}

/** A static answer that is made at the first request: most servers are never asked for their documents. */
export const madeLate = (make: () => StaticAnswer): StaticAnswer => {
  let made: StaticAnswer | undefined
  return (request) => (made ??= make())(request)
}

/** Serves a static answer, or one that is static for each request. */
export const staticRoute = (path: `/${string}`, answer: StaticAnswer) =>
  HttpRouter.add("GET", path, Effect.map(HttpServerRequest.HttpServerRequest, answer))

/** The headers of a page that takes nothing but what `sources` allows, and is in no frame. Source: CSP Level 3. */
export const pageHeaders = (sources: string, forms = "'none'"): Readonly<Record<string, string>> => ({
  "content-security-policy": `default-src 'none'; ${sources}; base-uri 'none'; form-action ${forms}; frame-ancestors 'none'`,
  "referrer-policy": "no-referrer"
})
