import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Authorization, OpenToCookies } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { pageQuery } from "../core/Page.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { Instant, Timestamp } from "../core/Timestamp.ts"

export const EmailId = idSchema("eml", "mail")

/** The states of one recipient's delivery. Source: contract/mail#deliveries. */
export const mailStatuses = [
  "queued",
  "sending",
  "deferred",
  "sent",
  "bounced",
  "expired",
  "suppressed",
  "canceled",
  "unknown"
] as const
const Status = Schema.Literals(mailStatuses)
export type MailStatus = typeof Status.Type

const Recipient = Schema.Struct({
  address: Schema.String,
  kind: Schema.Literals(["to", "cc", "bcc"]),
  status: Status,
  attempts: Schema.Int,
  last_reply: Schema.NullOr(Schema.String),
  last_attempt_at: Schema.NullOr(Timestamp),
  next_attempt_at: Schema.NullOr(Timestamp),
  opted_out_at: Schema.NullOr(Timestamp),
  bounces: Schema.Array(
    Schema.Struct({
      type: Schema.Literals(["hard", "soft", "complaint"]),
      detail: Schema.String,
      received_at: Timestamp
    })
  ).annotate({ description: "Reports that came later: it came back, or was complained of" })
}).annotate({ identifier: "MailRecipient", description: "A recipient, and what became of the delivery" })

const Email = Schema.Struct({
  id: EmailId,
  message_id_header: Schema.String.annotate({ description: "`Message-ID`, the same in every try" }),
  from: Schema.String,
  subject: Schema.String,
  created_at: Timestamp,
  send_at: Schema.NullOr(Timestamp),
  campaign: Schema.NullOr(Schema.String),
  recipients: Schema.Array(Recipient)
}).annotate({ identifier: "Email", description: "A mail that was accepted" })
export type Email = typeof Email.Type

const Attempt = Schema.Struct({
  address: Schema.String,
  attempt: Schema.Int,
  route: Schema.String.annotate({ description: "`sandbox`, `smtp` or `direct`" }),
  outcome: Schema.Literals(["sent", "deferred", "bounced", "route_down", "unknown"]),
  reply: Schema.String,
  began_at: Timestamp,
  ended_at: Timestamp
}).annotate({ identifier: "MailAttempt", description: "One try, at one recipient" })
export type MailAttempt = typeof Attempt.Type

const Retried = Schema.Struct({
  retried: Schema.Array(Schema.String).annotate({ description: "Recipients that it goes to once more" }),
  suppressed: Schema.Array(Schema.String).annotate({
    description: "Recipients that stay as they are, since their addresses are suppressed"
  })
}).annotate({ identifier: "RetriedEmail" })
export type RetriedEmail = typeof Retried.Type

/** Days that numbers are of where nothing else is asked for. */
export const statsDaysDefault = 30

const Counts = Schema.Record(Status, Schema.Int).annotate({
  identifier: "MailStatusCounts",
  description: "Recipients by their status"
})

const Stats = Schema.Struct({
  since: Timestamp,
  recipients: Schema.Int,
  opted_out: Schema.Int.annotate({ description: "Recipients who used the unsubscribe link" }),
  complaints: Schema.Int.annotate({ description: "Recipients who complained" }),
  statuses: Counts,
  days: Schema.Array(
    Schema.Struct({
      date: Schema.String.annotate({ description: "In UTC, of the mail", examples: ["2026-11-21"] }),
      statuses: Counts
    })
  ).annotate({ description: "Those with mail, the oldest first" })
}).annotate({ identifier: "EmailStats" })
export type EmailStats = typeof Stats.Type

const InboxMail = Schema.Struct({
  id: Schema.String.annotate({ description: "Id of the delivery" }),
  email_id: EmailId,
  address: Schema.String,
  from: Schema.String,
  subject: Schema.String,
  received_at: Timestamp
}).annotate({ identifier: "InboxMail", description: "A mail that the sandbox took" })
export type InboxMail = typeof InboxMail.Type

export const mailListDefault = 20
const page = pageQuery({ limitDefault: mailListDefault, limitMax: 100 })
const meta = Schema.Struct({ limit: Schema.Int, offset: Schema.Int, total: Schema.Int })
const params = { id: PathId }
const Raw = HttpApiSchema.StreamUint8Array({ contentType: "message/rfc822" })

/** Mails that were accepted, and their recipients. Source: contract/mail#deliveries. */
export class EmailsApi extends HttpApiGroup.make("emails")
  .add(
    HttpApiEndpoint.get("listEmails", "/emails", {
      query: {
        status: Schema.optionalKey(Status.annotate({ description: "Of a recipient" })),
        to: Schema.optionalKey(
          line(1, 254).annotate({ description: "The address of a recipient, in any case" })
        ),
        campaign: Schema.optionalKey(line(1, 100)),
        since: Schema.optionalKey(Instant.annotate({ description: "Accepted then or later" })),
        ...page
      },
      success: Schema.Struct({ emails: Schema.Array(Email), meta }).annotate({
        identifier: "EmailList",
        description: "Newest first"
      })
    }).annotate(OpenApi.Summary, "List mails"),
    HttpApiEndpoint.get("readEmail", "/emails/:id", {
      params,
      query: {
        wait: Schema.optionalKey(
          integer(0, 30).annotate({
            description:
              "Seconds to wait, at most, until no recipient's first attempt is under way or to come",
            default: 0
          })
        )
      },
      success: Email,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Read a mail and what became of its recipients"),
    HttpApiEndpoint.get("listEmailAttempts", "/emails/:id/attempts", {
      params,
      success: Schema.Struct({ attempts: Schema.Array(Attempt) }).annotate({
        identifier: "MailAttemptList",
        description: "In their order"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "List the attempts at a mail's recipients"),
    HttpApiEndpoint.get("readRawEmail", "/emails/:id/raw", {
      params,
      success: Raw,
      error: NotFound.plain
    })
      .annotate(OpenToCookies, true)
      .annotate(OpenApi.Summary, "Read a mail as it is sent")
      .annotate(OpenApi.Description, "Without the signature and headers that each recipient's copy has."),
    HttpApiEndpoint.post("cancelEmail", "/emails/:id/cancel", {
      params,
      success: Email,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotate(OpenApi.Summary, "Cancel the deliveries that are not under way")
      .annotate(OpenApi.Description, "409 where all have ended."),
    HttpApiEndpoint.post("retryEmail", "/emails/:id/retry", {
      params,
      success: Retried,
      error: [NotFound.plain, Conflict.plain]
    })
      .annotate(OpenApi.Summary, "Try the failed deliveries of a mail once more")
      .annotate(
        OpenApi.Description,
        "Those that bounced, expired or are unknown, for 72 hours from now; they count as recipients sent to. 409 where none " +
          "has failed, or the body is not kept any more."
      ),
    HttpApiEndpoint.get("readEmailStats", "/emails/stats", {
      query: {
        since: Schema.optionalKey(
          Instant.annotate({ description: `Accepted then or later; absent: ${statsDaysDefault} days ago` })
        ),
        campaign: Schema.optionalKey(line(1, 100))
      },
      success: Stats
    }).annotate(OpenApi.Summary, "Read the numbers of recipients, by status and day")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Mails", description: "What became of mail." }))
  .prefix("/api/v1") {}

/** Mail of the sandbox. Source: contract/mail#sandbox. */
export class MailInboxApi extends HttpApiGroup.make("mailInbox")
  .add(
    HttpApiEndpoint.get("listInbox", "/emails/inbox", {
      query: page,
      success: Schema.Struct({ emails: Schema.Array(InboxMail), meta }).annotate({
        identifier: "InboxMailList",
        description: "Newest first"
      })
    }).annotate(OpenApi.Summary, "List the mail that the sandbox took"),
    HttpApiEndpoint.get("readInboxMail", "/emails/inbox/:id", {
      params,
      success: Raw,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Read a recipient's copy from the sandbox"),
    HttpApiEndpoint.get("readInboxHtml", "/emails/inbox/:id/html", {
      params,
      success: HttpApiSchema.StreamUint8Array({ contentType: "text/html" }),
      error: NotFound.plain
    })
      .annotate(OpenToCookies, true)
      .annotate(OpenApi.Summary, "Show the HTML of a recipient's copy")
      .annotate(
        OpenApi.Description,
        "A page for a frame: its policy lets nothing run, load or navigate. 404 where the mail has no HTML. The cookie of " +
          "a session opens it, too."
      ),
    HttpApiEndpoint.delete("clearInbox", "/emails/inbox", {
      success: Schema.Struct({ deleted: Schema.Int }).annotate({
        identifier: "ClearedInbox",
        description: "So many were there"
      })
    }).annotate(OpenApi.Summary, "Empty the sandbox's inbox")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({ title: "Sandbox inbox", description: "Mail while no relay is named." })
  )
  .prefix("/api/v1") {}
