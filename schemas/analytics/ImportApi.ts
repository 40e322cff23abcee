import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { Faults } from "../core/Faults.ts"
import { PathId } from "../core/Ids.ts"
import { NotFound, PayloadTooLarge, RateLimited, ServiceUnavailable, StorageFull } from "../core/Problem.ts"
import { RateLimit } from "../core/RateLimit.ts"
import { integer, line } from "../core/Text.ts"

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
  errors: Schema.Array(Schema.Struct({ line: Schema.Int, error: Schema.String })).annotate({
    description: "The first 20 lines that are no events, counted over the whole import from 0"
  }),
  failed: Schema.Int.annotate({ description: "How many lines of this part are no events" })
}).annotate({ identifier: "ImportedPart", description: "What became of this part" })
export type ImportedPart = typeof ImportedPart.Type

/** History of a site, for its owner. Source: decisions, Analytics (`import access-log`). */
export class ImportApi extends HttpApiGroup.make("import")
  .add(
    HttpApiEndpoint.post("importEvents", "/sites/:id/import", {
      params: { id: PathId },
      query,
      payload: Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" })),
      success: ImportedPart,
      error: [NotFound, PayloadTooLarge, RateLimited, ServiceUnavailable, StorageFull]
    })
      .annotate(OpenApi.Summary, "Import past events")
      .annotate(
        OpenApi.Description,
        `NDJSON of \`collect\` events, at most ${importLinesMax} lines and 8 MiB a request, in order, however old. ` +
          "Parts that were taken before are skipped, so a part may be sent again after any failure: `next` says where " +
          "to go on. Identities are hashed with a salt of the import's own, which is thrown away with the last part."
      )
  )
  .middleware(RateLimit)
  .middleware(Authorization)
  .middleware(Faults)
  .annotateMerge(OpenApi.annotations({ title: "Import", description: "Past events of a site." }))
  .prefix("/api/v1") {}
