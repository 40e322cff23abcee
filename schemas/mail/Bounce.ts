import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { openStruct } from "../core/OpenStruct.ts"
import { BadRequest, NotFound, PayloadTooLarge, UnsupportedMediaType } from "../core/Problem.ts"
import { EmailId } from "./Email.ts"

/** Bytes of one report; a longer one is answered 413. */
export const reportBodyMax = 1024 * 1024

const Type = Schema.Literals(["hard", "soft", "complaint"]).annotate({
  description: "hard: mail to the address will not arrive; soft: it may later; complaint: it is not wanted"
})

const NewBounce = openStruct({
  message_id: Schema.String.annotate({ description: "`eml_…`, or the `Message-ID`" }),
  recipient: Schema.String.annotate({ description: "An address of the mail", examples: ["ada@example.org"] }),
  type: Type,
  detail: Schema.optionalKey(Schema.NullOr(Schema.String.annotate({ description: "At most 500 characters" })))
}).annotate({ identifier: "NewMailBounce" })

const Bounce = Schema.Struct({
  message_id: EmailId,
  recipient: Schema.String,
  type: Type,
  known: Schema.Boolean.annotate({ description: "It was reported before, and changed nothing" }),
  suppressed: Schema.Boolean.annotate({ description: "The address is suppressed by it" })
}).annotate({ identifier: "MailBounce", description: "A recipient that a report is about" })
export type Bounce = typeof Bounce.Type

/** Mails that came back, or were complained of. Source: contract/mail#bounces. */
export class MailBouncesApi extends HttpApiGroup.make("mailBounces")
  .add(
    HttpApiEndpoint.post("reportBounce", "/emails/bounces", {
      payload: [NewBounce, Schema.String.pipe(HttpApiSchema.asText({ contentType: "message/rfc822" }))],
      success: Schema.Struct({ bounces: Schema.Array(Bounce) }).annotate({
        identifier: "ReportedMailBounces",
        description: "Empty: the mail is no report, or ends no delivery"
      }),
      error: [BadRequest.plain, NotFound.plain, PayloadTooLarge.plain, UnsupportedMediaType.plain]
    })
      .annotate(OpenApi.Summary, "Tell of a mail that came back, or was complained of")
      .annotate(
        OpenApi.Description,
        "As JSON, or the report itself (RFC 3464, RFC 5965) as message/rfc822 of at most 1 MiB. A hard bounce and a complaint " +
          "suppress the address, five soft ones in a row do, too. 404 where it is about no mail of the caller."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Bounces", description: "Mails that came back, or were complained of." })
  )
  .prefix("/api/v1") {}
