import { Schema } from "effect"
import { Multipart } from "effect/http"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, Metered, OpenToProjectKeys } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { openStruct } from "../core/OpenStruct.ts"
import {
  BadRequest,
  Conflict,
  NotFound,
  NotImplemented,
  PayloadTooLarge,
  RequestTimeout,
  StorageFull,
  UnsupportedMediaType
} from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { BodyFormat, sends, Sent } from "./Message.ts"
import { attachmentsMax, priorities } from "./SendTerms.ts"

const textOf = (maxLength: number) =>
  Schema.String.check(
    Schema.isBetweenLength(1, maxLength, { expected: `text of 1 to ${maxLength} characters` })
  )
const ref = line(1, 64)

/**
 * The fields of a send as they are documented, for REST and tools alike; `streams/notify/SendFields.ts` reads them.
 * Source: contract/notify#sending.
 */
export const sendSchemas = {
  app: textOf(100).annotate({ description: "The sender, on one line: the heading", examples: ["backup.sh"] }),
  message: textOf(4_000).annotate({ description: "The text of the notification" }),
  title: Schema.String.check(Schema.isMaxLength(200)).annotate({
    description: "The heading in place of `app`, on one line"
  }),
  url: Schema.String.check(
    Schema.isMaxLength(2_048),
    Schema.isPattern(/^https?:\/\/[^\s]+$/u, { expected: "an http or https address" })
  ).annotate({ description: "Opened on click", examples: ["https://example.com/builds/42"] }),
  project: Schema.Union([
    ref,
    Schema.Array(ref).check(Schema.isMinLength(1), Schema.isMaxLength(100))
  ]).annotate({ description: "Ids or slugs; absent: every project that the key covers" }),
  body: Schema.Union([
    Schema.String,
    Schema.Record(Schema.String, Schema.Unknown),
    Schema.Array(Schema.Unknown)
  ]).annotate({ description: "Shown on the message's page: text, Markdown, a log or JSON; at most 1 MiB" }),
  bodyFormat: BodyFormat.annotate({ description: "Default: `auto`" }),
  priority: Schema.Literals(priorities).annotate({ description: "Default: `normal`" }),
  uploads: Schema.Array(Schema.String)
    .check(Schema.isMaxLength(attachmentsMax))
    .annotate({ description: "Ids of unused uploads of the same account" })
} as const

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const NewMessage = openStruct({
  app: sendSchemas.app,
  message: sendSchemas.message,
  title: optional(sendSchemas.title),
  url: optional(sendSchemas.url),
  project: optional(sendSchemas.project),
  body: optional(sendSchemas.body),
  bodyFormat: optional(sendSchemas.bodyFormat),
  priority: optional(sendSchemas.priority),
  attachments: optional(sendSchemas.uploads)
}).annotate({ identifier: "NewMessage" })

const text = Schema.optionalKey(Schema.String)

/** The same as a form, whose parts are text. */
const MessageForm = Schema.Struct({
  app: sendSchemas.app,
  message: sendSchemas.message,
  title: text,
  url: text,
  project: Schema.optionalKey(
    Schema.String.annotate({ description: "An id or a slug, as often as needed, or a JSON array of them" })
  ),
  body: Schema.optionalKey(
    Schema.String.annotate({ description: "Text, or JSON where the part's Content-Type says so" })
  ),
  bodyFormat: Schema.optionalKey(sendSchemas.bodyFormat),
  priority: Schema.optionalKey(sendSchemas.priority),
  attachments: Schema.optionalKey(
    Schema.String.annotate({
      description: "The id of an upload, as often as needed, or a JSON array of them"
    })
  ),
  file: Schema.optionalKey(
    Multipart.FilesSchema.annotate({ description: "Every part with a filename, whatever its name" })
  )
}).pipe(HttpApiSchema.asMultipartStream())

/** As the document describes it. It is served beside the Effect pipeline, by src/notify/sending/SendRoutes.ts. */
export class SendApi extends HttpApiGroup.make("sending")
  .add(
    HttpApiEndpoint.post("sendMessage", "/messages", {
      payload: [NewMessage, MessageForm],
      success: Sent.pipe(HttpApiSchema.status(201)),
      error: [
        BadRequest.plain,
        NotFound.plain,
        RequestTimeout.plain,
        Conflict.plain,
        PayloadTooLarge.plain,
        UnsupportedMediaType.plain,
        NotImplemented.plain,
        StorageFull.plain
      ]
    })
      .annotate(OpenToProjectKeys, "only")
      .annotate(Metered, sends)
      .annotate(OpenApi.Identifier, "messages.sendMessage")
      .annotate(OpenApi.Summary, "Send a notification to the subscribers of projects")
      .annotate(
        OpenApi.Description,
        "By a project key: 120 sends a minute, or its own limit. With `Idempotency-Key` (1 to 255 characters of ASCII, " +
          "24 h, per key) the same request is carried out once: a repetition has the same answer and " +
          "`Idempotent-Replay: true`, another request is 409. JSON: 8 MiB. A form has the same fields, 8 MiB together, and " +
          "files of 50 MiB each, 20 with the ids in `attachments`."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Sending", description: "Notifications to subscribers." }))
  .prefix("/api/v1") {}
