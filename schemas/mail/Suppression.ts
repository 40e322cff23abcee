import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, OpenToCookies } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { pageQuery } from "../core/Page.ts"
import { BadRequest, Conflict, NotFound, PayloadTooLarge } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"

export const suppressionsLimitDefault = 100

/** Lines and bytes of one request; more are answered 413. */
export const suppressionLinesMax = 20_000
export const suppressionBytesMax = 1024 * 1024

/** Characters. */
export const suppressionNoteMax = 200
const addressMax = 254

const Reason = Schema.Literals(["hard_bounce", "complaint", "manual", "unsubscribe"])

const Address = line(1, addressMax).annotate({
  description:
    "An address, in any case, or `*@` and a domain: all addresses there, not those of its sub-domains",
  examples: ["ada@example.org", "*@example.org"]
})

const Note = line(0, suppressionNoteMax).annotate({ examples: ["asked by phone"] })

export const Suppression = Schema.Struct({
  id: idSchema("sup", "suppression"),
  address: Schema.String.annotate({ description: "An address in lower case, or `*@` and a domain" }),
  scope: Schema.Literals(["all", "bulk"]).annotate({
    description: "`bulk`: mail with an unsubscribe link is not sent, other mail is"
  }),
  reason: Reason,
  note: Schema.NullOr(Schema.String),
  created_at: TimestampOfDate
}).annotate({ identifier: "Suppression", description: "An address that mail is not sent to" })
export type Suppression = typeof Suppression.Type

const NewSuppression = Schema.Struct({
  address: Address,
  reason: Schema.optionalKey(
    Reason.annotate({
      description: "`unsubscribe` holds for bulk mail alone, the others for all mail",
      default: "manual"
    })
  ),
  note: Schema.optionalKey(Schema.NullOr(Note))
}).annotate({ identifier: "NewSuppression" })
export type NewSuppression = typeof NewSuppression.Type

/** A row of CSV has these fields. */
export const SuppressionOfCsv = Schema.Struct({ address: Address, reason: Reason, note: Note })

const ImportedSuppressions = Schema.Struct({
  added: Schema.Int,
  known: Schema.Int.annotate({ description: "Rows of addresses that were there; they stay as they were" }),
  failed: Schema.Int.annotate({ description: "Rows that were not taken" }),
  errors: Schema.Array(Schema.Struct({ line: Schema.Int, error: Schema.String })).annotate({
    description: "Of the first 20 of them; lines are counted from 1"
  })
}).annotate({ identifier: "ImportedSuppressions" })
export type ImportedSuppressions = typeof ImportedSuppressions.Type

/** Addresses that an owner's mail does not go to. Source: contract/mail#suppressions. */
export class SuppressionsApi extends HttpApiGroup.make("mailSuppressions")
  .add(
    HttpApiEndpoint.get("listSuppressions", "/emails/suppressions", {
      query: {
        address: Schema.optionalKey(
          line(1, addressMax).annotate({
            description: "Those that hold for this address, or with this pattern"
          })
        ),
        reason: Schema.optionalKey(Reason),
        ...pageQuery({ limitDefault: suppressionsLimitDefault, limitMax: 1_000 })
      },
      success: Schema.Struct({
        suppressions: Schema.Array(Suppression),
        meta: Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
      }).annotate({ identifier: "SuppressionList", description: "Newest first" }),
      error: BadRequest.plain
    }).annotate(OpenApi.Summary, "List suppressions"),
    HttpApiEndpoint.post("addSuppression", "/emails/suppressions", {
      payload: NewSuppression,
      success: Suppression.pipe(HttpApiSchema.status(201)),
      error: [BadRequest.plain, Conflict.plain]
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Suppress an address or a domain")
      .annotate(
        OpenApi.Description,
        "One that is there gets the reason and the note, and keeps its id. An owner adds at most 1,000,000 (409); " +
          "those of bounces, complaints and unsubscribe links come beside them."
      ),
    HttpApiEndpoint.delete("removeSuppression", "/emails/suppressions/:id", {
      params: { id: PathId },
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "RemovedSuppression"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Remove a suppression"),
    HttpApiEndpoint.get("exportSuppressions", "/emails/suppressions.csv", {
      success: HttpApiSchema.StreamUint8Array({ contentType: "text/csv" })
    })
      .annotate(OpenToCookies, true)
      .annotate(OpenApi.Summary, "All suppressions as CSV")
      .annotate(
        OpenApi.Description,
        "Columns `address`, `reason`, `scope`, `note`, `created_at`. Cells that a spreadsheet would take for a formula " +
          "begin with an apostrophe, which an import drops."
      ),
    HttpApiEndpoint.post("importSuppressions", "/emails/suppressions.csv", {
      payload: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" })),
      success: ImportedSuppressions,
      error: [BadRequest.plain, Conflict.plain, PayloadTooLarge.plain]
    })
      .annotate(OpenApi.Summary, "Suppress the addresses of a CSV file")
      .annotate(
        OpenApi.Description,
        `UTF-8, at most ${suppressionLinesMax} rows and 1 MiB a request. The first row names the columns: \`address\` (or ` +
          "`email`), `reason`, `note`; others are ignored. Without such a row the first column has the addresses, and " +
          "the reason is `manual`. Rows with faults are told and left out; the others are taken."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Suppressions", description: "Addresses that mail is not sent to." })
  )
  .prefix("/api/v1") {}
