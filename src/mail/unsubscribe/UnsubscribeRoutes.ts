import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import { headersOf } from "#schemas/core/Problem.ts"
import { storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { askPage, awayPage, donePage, noLinkPage } from "./UnsubscribePage.ts"
import { type LinkedRecipient, Unsubscribes } from "./Unsubscribes.ts"
import { unsubscribePath } from "./UnsubscribeTokens.ts"

const path = `${unsubscribePath}/:token` as const

/** Additions of these routes to the known paths of the API. */
export const paths = [
  ["GET", path],
  ["POST", path]
] as const

const answerOf = ({ contentType, headers, status, text }: ReturnType<typeof noLinkPage>) =>
  HttpServerResponse.text(text, { status, contentType, headers })

const pageOf = (recipient: LinkedRecipient | undefined) => {
  if (recipient === undefined) return noLinkPage()
  return recipient.hasOptedOut ? donePage(recipient) : askPage(recipient)
}

/** A page, or the one that says that a store is away. */
const shown = (use: (token: string) => Effect.Effect<LinkedRecipient | undefined, SqlError>) =>
  HttpRouter.params.pipe(
    Effect.flatMap(({ token = "" }) => use(token)),
    storeAwayAbandoned,
    Effect.map((recipient) => answerOf(pageOf(recipient))),
    Effect.catchTag("ServiceUnavailable", (problem) =>
      Effect.succeed(HttpServerResponse.setHeaders(answerOf(awayPage()), headersOf(problem)))
    )
  )

/**
 * The links of `List-Unsubscribe`. A POST is the request itself, by a mail client or the page's button; no cookie counts, and
 * its body need not be read. Source: RFC 8058, 3.2.
 */
export const layer = Layer.unwrap(
  Effect.map(Unsubscribes, ({ find, optOut }) =>
    Layer.merge(HttpRouter.add("GET", path, shown(find)), HttpRouter.add("POST", path, shown(optOut)))
  )
)
