import { createHash } from "node:crypto"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { isNoneMatch } from "./ByteRanges.ts"
import { encodedBody, type Encoding, encodingFor } from "./ContentEncoding.ts"

/** A body that changes with the program alone, in every encoding, each with its strong entity tag. */
export type StaticBodies = Readonly<Record<Encoding, StaticBody>>

export interface StaticBody {
  readonly bytes: Uint8Array
  readonly etag: string
}

export const staticBody = (bytes: Uint8Array): StaticBody => ({
  bytes,
  etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`
})

/** Encodes a text once, for all who ask for it. */
export const staticBodies = (text: string): StaticBodies => {
  const { br, gzip, identity } = encodedBody(new TextEncoder().encode(text))
  return { identity: staticBody(identity), gzip: staticBody(gzip), br: staticBody(br) }
}

interface StaticOptions {
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/** The body in the smallest encoding that the request takes; 304 where its sender has it. */
export const staticAnswer = (bodies: StaticBodies, { contentType, headers: own }: StaticOptions) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const encoding = encodingFor(request.headers["accept-encoding"])
    const { bytes, etag } = bodies[encoding]
    const headers = { ...own, etag, vary: "Accept-Encoding" }
    if (isNoneMatch(request.headers["if-none-match"], etag)) {
      return HttpServerResponse.empty({ status: 304, headers })
    }
    return HttpServerResponse.uint8Array(bytes, {
      contentType,
      headers: encoding === "identity" ? headers : { ...headers, "content-encoding": encoding }
    })
  })
