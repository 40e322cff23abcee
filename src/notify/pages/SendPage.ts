import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { Effect } from "effect"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { encodingFor } from "#src/http/Static.ts"
import type { NotifyPage } from "./NotifyPage.ts"

const compressed = promisify(gzip)

/** A shorter page is sent as it is. */
const compressedBytesMin = 1_024

/** The headers of an answer, but for one that each answer of an exchange has. */
export const entriesOf = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).filter(([name]) => name !== "x-content-type-options")

/** Sends a page, packed where that is worth it. */
export const sendPage = Effect.fnUntraced(function* (exchange: KeyedExchange, page: NotifyPage) {
  const identity = Buffer.from(page.text)
  const encodings = exchange.request.header("accept-encoding")
  const isSmall = identity.length < compressedBytesMin || encodingFor(encodings) === "identity"
  const isGzip = !isSmall && encodingFor(`${encodings}, br;q=0`) === "gzip"
  const body = isGzip ? yield* Effect.promise(() => compressed(identity, { level: 4 })) : identity
  const headers = {
    ...page.headers,
    "content-type": page.contentType,
    vary: "Accept-Encoding",
    ...(isGzip && { "content-encoding": "gzip" }),
    ...(page.status === 503 && { "retry-after": "5" })
  }
  exchange.send(page.status, entriesOf(headers), body)
})
