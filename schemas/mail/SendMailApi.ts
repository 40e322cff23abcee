import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { openStruct } from "../core/OpenStruct.ts"
import {
  BadRequest,
  Conflict,
  PayloadTooLarge,
  RequestTimeout,
  StorageFull,
  UnsupportedMediaType
} from "../core/Problem.ts"
import { EmailId } from "./Email.ts"

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const addresses = (description: string) =>
  Schema.String.annotate({ description, examples: ["Ada <ada@example.org>, bob@example.com"] })

const MailAttachment = openStruct({
  content: Schema.String.annotate({ description: "Base64 of the file" }),
  filename: Schema.String.annotate({ description: "With its extension", examples: ["invoice.pdf"] })
}).annotate({ identifier: "MailAttachment" })

/** The fields of a mail as they are documented; `streams/mail/MailFields.ts` reads them. Source: contract/mail#sending. */
const NewMail = openStruct({
  from: Schema.String.annotate({ description: "One address", examples: ["news@example.com"] }),
  to: addresses("One or more, separated by commas"),
  subject: Schema.String.annotate({ description: "At most 998 characters" }),
  html: optional(Schema.String.annotate({ description: "This or `text`; sent byte for byte" })),
  text: optional(Schema.String.annotate({ description: "Made from `html` where it is absent" })),
  name: optional(Schema.String.annotate({ description: "The sender's name, in the place of one in `from`" })),
  reply_to: optional(addresses("One address")),
  cc: optional(addresses("As `to`")),
  bcc: optional(addresses("As `to`, and in no header")),
  attachments: optional(Schema.Array(MailAttachment)),
  headers: optional(
    Schema.Record(Schema.String, Schema.String).annotate({
      description:
        "`X-Priority`, `X-Campaign-ID`, `List-Unsubscribe` or `X-Unsubscribe-URL` (one http or https URL), `In-Reply-To`, " +
        "`References`, `Auto-Submitted` and other `X-…`"
    })
  ),
  unsubscribe: optional(
    Schema.Boolean.annotate({ description: "It is bulk mail, which those who opted out do not get" })
  ),
  send_at: optional(Schema.String.annotate({ description: "An ISO-8601 instant, at most 30 days ahead" }))
}).annotate({ identifier: "NewMail" })

const SentMail = Schema.Struct({
  success: Schema.Literal(true),
  message_id: EmailId
}).annotate({ identifier: "SentMail", description: "It is accepted, with a delivery for each recipient" })

const description =
  "To at most 50 recipients, in 36 MiB of JSON. With `Idempotency-Key` (1 to 255 characters of ASCII, 24 h, per key) the " +
  "same request is carried out once: a repetition has the same answer and `Idempotent-Replay: true`, another request is 409. " +
  "What became of each recipient is read from `/api/v1/emails/{id}`."

const sending = (name: "sendMail" | "sendMailShort", path: "/api/v1/send" | "/send") =>
  HttpApiEndpoint.post(name, path, {
    payload: NewMail,
    success: SentMail,
    error: [
      BadRequest.plain,
      RequestTimeout.plain,
      Conflict.plain,
      PayloadTooLarge.plain,
      UnsupportedMediaType.plain,
      StorageFull.plain
    ]
  })
    .annotate(OpenApi.Identifier, `mail.${name}`)
    .annotate(OpenApi.Summary, "Send a mail")
    .annotate(OpenApi.Description, description)

/** As the document describes it. It is served beside the Effect pipeline, by src/mail/sending/SendMailRoutes.ts. */
export class SendMailApi extends HttpApiGroup.make("sendingMail")
  .add(sending("sendMail", "/api/v1/send"), sending("sendMailShort", "/send"))
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Sending mail", description: "Mail to addresses." })) {}
