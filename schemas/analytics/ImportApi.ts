import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId } from "../core/Ids.ts"
import { Timestamp } from "../core/Timestamp.ts"
import { integer, line } from "../core/Text.ts"
import { NotFound, PayloadTooLarge, RateLimited, ServiceUnavailable, StorageFull } from "../core/Problem.ts"

/** Lines of one request; more are answered 413. */
export const importLinesMax = 10_000

const query = {
  import: line(1, 64).annotate({
    description: "The caller's name for this import, the same for all its parts and when it is tried again"
  }),
  offset: integer(0, 1_000_000_000).annotate({
    description: "How many lines of the import lie before this part",
    examples: [0]
  }),
  continues: Schema.optionalKey(
    line(1, 64).annotate({
      description:
        "The name of an earlier import that a new one begins with, such as that of a file that has grown: its lines " +
        "count as taken, and `offset` goes on from them. Ignored where the import is known"
    })
  ),
  last: Schema.optionalKey(
    Schema.Literals(["true", "false"]).annotate({
      description: "true with the last part: the import's salt is thrown away",
      default: "false"
    })
  )
}

export const ImportedPart = Schema.Struct({
  next: Schema.Int.annotate({ description: "The offset at which to go on" }),
  stored: Schema.Int,
  dropped: Schema.Record(Schema.String, Schema.Int).annotate({
    description: "Good events that do not count, by reason"
  }),
  bots: Schema.Record(Schema.String, Schema.Int).annotate({
    description: "Of those dropped as `bot`: how many of each"
  }),
  errors: Schema.Array(Schema.Struct({ line: Schema.Int, error: Schema.String })).annotate({
    description: "The first 20 lines that are no events, counted over the whole import from 0"
  }),
  failed: Schema.Int.annotate({ description: "How many lines of this part are no events" })
}).annotate({ identifier: "ImportedPart", description: "What became of this part" })
export type ImportedPart = typeof ImportedPart.Type

export const Import = Schema.Struct({
  name: Schema.String,
  continues: Schema.NullOr(Schema.String).annotate({
    description: "The import that it begins with and shares its numbers with; null: it is one of its own"
  }),
  lines: Schema.Int.annotate({ description: "Lines taken so far: the offset at which to go on" }),
  stored: Schema.Int,
  failed: Schema.Int.annotate({ description: "Lines that were no events" }),
  dropped: Schema.Record(Schema.String, Schema.Int).annotate({
    description: "Good events that do not count, by reason"
  }),
  startedAt: Timestamp,
  updatedAt: Timestamp,
  finishedAt: Schema.NullOr(Timestamp).annotate({ description: "When its last part was taken" })
}).annotate({ identifier: "Import", description: "An import and what became of its lines" })
export type Import = typeof Import.Type

export const ImportList = Schema.Struct({ imports: Schema.Array(Import) }).annotate({
  identifier: "ImportList",
  description: "The newest first"
})

/** History of a site, for its owner. Source: contract/analytics#imports. */
export class ImportApi extends HttpApiGroup.make("import")
  .add(
    HttpApiEndpoint.post("importEvents", "/sites/:id/import", {
      params: { id: PathId },
      query,
      payload: Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" })),
      success: ImportedPart,
      error: [
        NotFound.plain,
        PayloadTooLarge.plain,
        RateLimited.plain,
        ServiceUnavailable.plain,
        StorageFull.plain
      ]
    })
      .annotate(OpenApi.Summary, "Import past events")
      .annotate(
        OpenApi.Description,
        `NDJSON of \`collect\` events, at most ${importLinesMax} lines and 8 MiB a request, in order, however old. ` +
          "Parts that were taken before are skipped, so a part may be sent again after any failure: `next` says where " +
          "to go on. Identities are hashed with a salt of the import's own, which is thrown away with the last part. " +
          "What does not count is also among the site's `drops`, on the day of the import."
      )
  )
  .add(
    HttpApiEndpoint.get("listImports", "/sites/:id/imports", {
      params: { id: PathId },
      success: ImportList,
      error: [NotFound.plain, ServiceUnavailable.plain]
    })
      .annotate(OpenApi.Summary, "List imports")
      .annotate(
        OpenApi.Description,
        "The site's imports, how far each has come, and what was dropped and why."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Import", description: "Past events of a site." }))
  .prefix("/api/v1") {}
