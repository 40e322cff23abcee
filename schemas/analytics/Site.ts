import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Model } from "effect/schema"
import { Authorization } from "../core/Authorization.ts"
import { ErrorBoundary } from "../core/ErrorBoundary.ts"
import { PathId, SiteId } from "../core/Ids.ts"
import { JsonBody } from "../core/JsonBody.ts"
import { given, hidden, made, madeAt, maybeGiven, shape } from "../core/Noun.ts"
import { Conflict, NotFound, ServiceUnavailable } from "../core/Problem.ts"
import { integer, line } from "../core/Text.ts"
import { Timestamp, TimestampOfDate } from "../core/Timestamp.ts"

const Domain = line(1, 253).annotate({
  description: "Host name; a scheme, `www.`, port and path are dropped, international names kept as punycode",
  examples: ["example.com"]
})
const TimeZone = line(1, 64).annotate({ description: "IANA time zone", examples: ["Europe/Berlin"] })

const RetentionDays = Schema.NullOr(integer(1, 3_650)).annotate({
  description: "UTC days before today that are kept; older events and visits are deleted. null: all are kept",
  examples: [365]
})

/** Only the server writes it. */
const noted = Model.Field({
  select: Schema.NullOr(Schema.Date),
  json: Schema.NullOr(TimestampOfDate)
})

/** A row of `sites`. Source: contract/analytics#sites. */
export class SiteRow extends Model.Class<SiteRow>("SiteRow")({
  id: made(SiteId.annotate({ description: "Also the public site id of the snippet" })),
  user_id: hidden,
  name: given(Schema.String, line(1, 100)),
  /** bare: lower case, punycode, without scheme, port and `www.` */
  domain: given(Schema.String, Domain),
  timezone: maybeGiven(Schema.String, TimeZone, { default: "UTC" }),
  public: maybeGiven(Schema.Boolean, Schema.Boolean, { default: false }),
  retentionDays: maybeGiven(Schema.NullOr(Schema.Int), RetentionDays, { default: null }),
  /** since the last reset */
  firstEventAt: noted,
  resetAt: noted,
  createdAt: madeAt,
  /** the name of its statistics in logs and stores (streams/analytics/Site.ts) */
  dataset: hidden,
  secret_prefix: Model.FieldOnly(["insert", "update"])(Schema.String),
  /** SHA-256 of the site secret: lower-case hexadecimal in memory */
  secret_hash: Model.Field({ select: Schema.String, insert: Schema.Uint8Array, update: Schema.Uint8Array }),
  /** the persistent key of the site's `visitor` identities */
  visitorSecret: Model.FieldOnly(["select", "insert"])(Schema.Uint8Array)
}) {}

export const Site = shape("Site", SiteRow.json, "A site")
/** as JSON */
export type Site = typeof Site.Encoded

export const NewSite = shape("NewSite", SiteRow.jsonCreate)
export type NewSite = typeof NewSite.Type

/** An absent field stays as it is. */
export const SiteChange = shape("SiteChange", SiteRow.jsonUpdate)
export type SiteChange = typeof SiteChange.Type

const Secret = Schema.String.annotate({ description: "The site secret (`ssk_`): shown now and never again" })

export const CreatedSite = Schema.Struct({ site: Site, secret: Secret }).annotate({
  identifier: "CreatedSite",
  description: "The new site and its secret"
})
/** as JSON */
export type CreatedSite = typeof CreatedSite.Encoded

const RotatedSecret = Schema.Struct({ secret: Secret }).annotate({
  identifier: "RotatedSecret",
  description: "The new secret; the old one works nowhere within a second"
})

export const SiteList = Schema.Struct({ sites: Schema.Array(Site) }).annotate({
  identifier: "SiteList",
  description: "The caller's own sites, oldest first"
})

const ResetSite = Schema.Struct({ resetAt: Timestamp }).annotate({
  identifier: "ResetSite",
  description: "What was accepted before this instant is in no figure any more"
})

const params = { id: PathId }

/** Sites and their secrets, for their owner's account keys. Source: contract/analytics#sites. */
export class SitesApi extends HttpApiGroup.make("sites")
  .add(
    HttpApiEndpoint.get("listSites", "/sites", { success: SiteList }).annotate(
      OpenApi.Summary,
      "List one's own sites"
    ),
    HttpApiEndpoint.post("createSite", "/sites", {
      payload: NewSite,
      success: CreatedSite.pipe(HttpApiSchema.status(201)),
      error: Conflict.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Make a site")
      .annotate(OpenApi.Description, "A user has at most 1,000 sites (409)."),
    HttpApiEndpoint.patch("updateSite", "/sites/:id", {
      params,
      payload: SiteChange,
      success: Site,
      error: NotFound.plain
    })
      .middleware(JsonBody)
      .annotate(OpenApi.Summary, "Change a site"),
    HttpApiEndpoint.delete("deleteSite", "/sites/:id", {
      params,
      success: Schema.Struct({ deleted: Schema.Literal(true) }).annotate({
        identifier: "DeletedSite",
        description: "It takes and shows nothing any more, and its statistics are deleted within the hour"
      }),
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Delete a site"),
    HttpApiEndpoint.post("rotateSiteSecret", "/sites/:id/secret", {
      params,
      success: RotatedSecret,
      error: NotFound.plain
    }).annotate(OpenApi.Summary, "Replace a site's secret"),
    HttpApiEndpoint.post("resetSite", "/sites/:id/reset", {
      params,
      success: ResetSite,
      error: [NotFound.plain, ServiceUnavailable.plain]
    })
      .annotate(OpenApi.Summary, "Delete a site's statistics")
      .annotate(
        OpenApi.Description,
        "Events, visits, drops, imports and remembered event ids of the site up to now are gone from every answer at " +
          "once, and deleted within the hour. Counting goes on. It cannot be undone."
      )
  )
  .middleware(Authorization)
  .middleware(ErrorBoundary)
  .annotateMerge(OpenApi.annotations({ title: "Sites", description: "Sites whose visits are counted." }))
  .prefix("/api/v1") {}
