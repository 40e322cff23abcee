import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { idSchema, PathId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { hidden, made, madeAt } from "../core/Noun.ts"
import { Conflict, NotFound } from "../core/Problem.ts"
import { line } from "../core/Text.ts"
import { TimestampOfDate } from "../core/Timestamp.ts"

export const DomainId = idSchema("dom", "mail domain")

/** `sb1._domainkey.example.com`: a key has one of the two, and the one that takes its place the other. */
export const Selector = Schema.Literals(["sb1", "sb2"])
export type Selector = typeof Selector.Type

export const RecordStatus = Schema.Literals(["ok", "missing", "different"])

/** The outcome of a look at one record. */
export const Finding = Schema.Struct({
  status: RecordStatus,
  found: Schema.Array(Schema.String).annotate({
    description: "The records that were there, at most 5 of 500 characters"
  }),
  problem: Schema.NullOr(Schema.String).annotate({
    description: "The difference, or why DNS gave no answer; null: there is none"
  })
})
export type Finding = typeof Finding.Type

const ofServer = Model.FieldOnly(["select", "update"])
const sealedKey = Model.FieldOnly(["select", "insert", "update"])(Schema.Uint8Array)
const publicKey = Model.FieldOnly(["select", "insert", "update"])(Schema.String)
const instant = ofServer(Schema.NullOr(Schema.Date))

/** A row of `mail_domains`. Private keys are PEM of PKCS #8, sealed by a secret of the installation. */
export class DomainRow extends Model.Class<DomainRow>("DomainRow")({
  id: made(DomainId),
  user_id: hidden,
  name: Model.FieldOnly(["select", "insert"])(Schema.String),
  /** of the key that signs */
  selector: Model.FieldOnly(["select", "insert", "update"])(Selector),
  public_key: publicKey,
  private_key: sealedKey,
  /** of the key that signs once it is seen in DNS, under the other selector */
  next_public_key: ofServer(Schema.NullOr(Schema.String)),
  next_private_key: ofServer(Schema.NullOr(Schema.Uint8Array)),
  /** since then the key of the other selector signs no more */
  retired_at: instant,
  verified_at: instant,
  unverified_at: ofServer(Schema.Date),
  looked_up_at: instant,
  /** by kind and name of the record */
  findings: Model.Field({ select: Schema.Record(Schema.String, Finding), update: Schema.String }),
  created_at: madeAt
}) {}

const DomainRecord = Schema.Struct({
  kind: Schema.Literals(["dkim", "spf", "dmarc", "bounce"]).annotate({
    description: "`dkim` alone is needed for a domain to be verified"
  }),
  type: Schema.Literals(["TXT", "MX"]),
  name: Schema.String.annotate({ examples: ["sb1._domainkey.example.com"] }),
  value: Schema.String.annotate({
    description: "All of it, for forms of DNS providers",
    examples: ["v=DMARC1; p=none"]
  }),
  zone: Schema.String.annotate({
    description: "The same as a line of a zone file, texts in strings of at most 255 characters",
    examples: ['_dmarc.example.com. 3600 IN TXT "v=DMARC1; p=none"']
  }),
  status: Schema.NullOr(RecordStatus).annotate({ description: "At the last look; null: none yet" }),
  found: Finding.fields.found,
  problem: Finding.fields.problem
}).annotate({ identifier: "MailDomainRecord", description: "A record to publish in DNS" })
export type DomainRecord = typeof DomainRecord.Type

const Domain = Schema.Struct({
  id: DomainId,
  name: Schema.String.annotate({ description: "Lower-case ASCII", examples: ["example.com"] }),
  verified: Schema.Boolean.annotate({
    description: "Its owner may send from it and its sub-domains, and that mail is signed"
  }),
  verified_at: Schema.NullOr(TimestampOfDate),
  looked_up_at: Schema.NullOr(TimestampOfDate),
  created_at: TimestampOfDate,
  keys: Schema.Array(
    Schema.Struct({
      selector: Selector,
      state: Schema.Literals(["signing", "awaited", "retired"]).annotate({
        description: "`awaited`: signs once it is seen in DNS; `retired`: signs no more"
      }),
      keep_until: Schema.NullOr(TimestampOfDate).annotate({
        description: "Of a retired key: its record stays until then, for mail on its way"
      })
    })
  ),
  records: Schema.Array(DomainRecord)
}).annotate({ identifier: "MailDomain", description: "A domain to send mail from" })
export type Domain = typeof Domain.Type
/** In JSON. */
export type EncodedDomain = typeof Domain.Encoded

export const NewDomain = Schema.Struct({
  name: line(1, 300).annotate({
    description: "At most 238 characters in ASCII, two labels or more",
    examples: ["example.com"]
  })
}).annotate({ identifier: "NewMailDomain" })
export type NewDomain = typeof NewDomain.Type

const one = { params: { id: PathId }, success: Domain, error: NotFound.plain }
const oneOrConflict = { ...one, error: [NotFound.plain, Conflict.plain] }

/** Domains that mail is sent from. Source: RFC 6376 (DKIM), RFC 7208 (SPF), RFC 7489 (DMARC). */
export class MailDomainsApi extends HttpApiGroup.make("mailDomains")
  .add(
    HttpApiEndpoint.get("listMailDomains", "/emails/domains", {
      success: Schema.Struct({ domains: Schema.Array(Domain) }).annotate({ identifier: "MailDomainList" })
    }).annotate(OpenApi.Summary, "List one's domains, the oldest first"),
    HttpApiEndpoint.post("createMailDomain", "/emails/domains", {
      payload: NewDomain,
      success: Domain.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Add a domain, and read the records to publish")
      .annotate(OpenApi.Description, "A user has at most 100 domains (409)."),
    HttpApiEndpoint.get("readMailDomain", "/emails/domains/:id", one).annotate(
      OpenApi.Summary,
      "Read a domain and its records, as they were at the last look"
    ),
    HttpApiEndpoint.post("verifyMailDomain", "/emails/domains/:id/verify", oneOrConflict)
      .annotate(OpenApi.Summary, "Look the records of a domain up")
      .annotate(
        OpenApi.Description,
        "Verified with the DKIM record of the key that signs, and looked up daily from then on. 409 where it is " +
          "verified for another account."
      ),
    HttpApiEndpoint.post("rotateMailDomainKey", "/emails/domains/:id/rotate", oneOrConflict)
      .annotate(OpenApi.Summary, "Make another DKIM key for a domain")
      .annotate(
        OpenApi.Description,
        "The old key signs until the record of the new one is seen. 409 where a new one is awaited already, or the " +
          "one before signed within 7 days."
      ),
    HttpApiEndpoint.delete("deleteMailDomain", "/emails/domains/:id", {
      ...one,
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "DeletedMailDomain",
        description: "Its keys are deleted, and mail from it is signed no more"
      })
    }).annotate(OpenApi.Summary, "Delete a domain")
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(
    OpenApi.annotations({
      title: "Mail domains",
      description: "Domains that mail is sent from, and signed for."
    })
  )
  .prefix("/api/v1") {}
