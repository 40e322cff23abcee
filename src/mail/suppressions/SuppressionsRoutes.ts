import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { pageOf } from "#schemas/core/Page.ts"
import { BadRequest, PayloadTooLarge } from "#schemas/core/Problem.ts"
import { MailRoomApi } from "#schemas/mail/MailRoomApi.ts"
import {
  type Suppression,
  suppressionBytesMax,
  suppressionLinesMax,
  suppressionsLimitDefault
} from "#schemas/mail/Suppression.ts"
import { readSuppressions } from "#streams/mail/SuppressionCsv.ts"
import { AppConfig } from "#src/Config.ts"
import { bodyOf } from "#src/http/BodyOf.ts"
import { csv } from "#src/http/Csv.ts"
import { storeAway, storeAwayAbandoned } from "#src/http/StoreAway.ts"
import { Suppressions } from "./Suppressions.ts"

const columns = ["address", "reason", "scope", "note", "created_at"] as const

/** Faults that an import tells of. */
const errorsShown = 20

/** Lines of CSV; the first part begins with the names of the columns. */
const linesOf = (rows: ReadonlyArray<Suppression>, index: number): Uint8Array => {
  const lines = csv(
    columns,
    rows.map((row) => ({ ...row, created_at: row.created_at.toISOString() }))
  )
  return Buffer.from(index === 0 ? lines : lines.slice(lines.indexOf("\n") + 1))
}

const textOf = (bytes: Uint8Array): Effect.Effect<string, BadRequest> =>
  Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    catch: () => BadRequest.of("body: it is not UTF-8")
  })

export const layer = HttpApiBuilder.group(
  MailRoomApi,
  "mailSuppressions",
  Effect.fnUntraced(function* (handlers) {
    const { limits } = yield* AppConfig
    const suppressions = yield* Suppressions
    const owned = <A, E, R>(use: (owner: string) => Effect.Effect<A, E, R>) =>
      Effect.flatMap(CurrentKey, ({ ownerId }) => use(ownerId))

    return handlers
      .handle("listSuppressions", ({ query }) =>
        Effect.gen(function* () {
          const page = pageOf(query, suppressionsLimitDefault)
          const { rows, total } = yield* owned((owner) => suppressions.list(owner, query, page))
          return { suppressions: rows, meta: { ...page, total } }
        }).pipe(storeAway)
      )
      .handle("addSuppression", ({ payload: { address, note = null, reason = "manual" } }) =>
        storeAwayAbandoned(owned((owner) => suppressions.add(owner, { address, note, reason })))
      )
      .handle("removeSuppression", ({ params }) =>
        Effect.as(storeAway(owned((owner) => suppressions.remove(owner, params.id))), {
          deleted: true as const
        })
      )
      .handle("exportSuppressions", () =>
        Effect.map(storeAway(owned(suppressions.all)), (parts) =>
          HttpServerResponse.stream(
            Stream.map(Stream.zipWithIndex(parts), ([rows, index]) => linesOf(rows, index)),
            {
              contentType: "text/csv; charset=utf-8",
              headers: { "content-disposition": 'attachment; filename="suppressions.csv"' }
            }
          )
        )
      )
      .handleRaw("importSuppressions", ({ request }) =>
        Effect.gen(function* () {
          const text = yield* textOf(yield* bodyOf(request, suppressionBytesMax))
          const read = readSuppressions(text, suppressionLinesMax)
          if (read === undefined)
            return yield* PayloadTooLarge.of(`body: at most ${suppressionLinesMax} rows`)
          const { faults, suppressions: found } = read
          const added = yield* owned((owner) =>
            storeAwayAbandoned(suppressions.addAll(owner, found), limits.mailSendMillis)
          )
          return {
            added,
            known: found.length - added,
            failed: faults.length,
            errors: faults.slice(0, errorsShown)
          }
        })
      )
  })
)
