import { Schema } from "effect"
import { SiteId } from "../core/Ids.ts"
import { line } from "../core/Text.ts"
import { Timestamp } from "../core/Timestamp.ts"

const SiteName = line(1, 100)
const Domain = line(1, 253).annotate({
  description: "Host name; a scheme, `www.`, port and path are dropped, international names kept as punycode",
  examples: ["example.com"]
})
const TimeZone = line(1, 64).annotate({ description: "IANA time zone", examples: ["Europe/Berlin"] })

/** Source: contract/analytics#sites. */
export const Site = Schema.Struct({
  id: SiteId.annotate({ description: "Also the public site id of the snippet" }),
  name: Schema.String,
  domain: Schema.String,
  timezone: Schema.String,
  public: Schema.Boolean,
  firstEventAt: Schema.NullOr(Timestamp),
  createdAt: Timestamp
}).annotate({ identifier: "Site", description: "A site" })
export type Site = typeof Site.Type

/** Source: contract/analytics#sites. */
export const NewSite = Schema.Struct({
  name: SiteName,
  domain: Domain,
  timezone: Schema.optionalKey(TimeZone.annotate({ default: "UTC" })),
  public: Schema.optionalKey(Schema.Boolean.annotate({ default: false }))
}).annotate({ identifier: "NewSite" })
export type NewSite = typeof NewSite.Type

/** An absent field stays as it is. */
export const SiteChange = Schema.Struct({
  name: Schema.optionalKey(SiteName),
  domain: Schema.optionalKey(Domain),
  timezone: Schema.optionalKey(TimeZone),
  public: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "SiteChange" })
export type SiteChange = typeof SiteChange.Type

const Secret = Schema.String.annotate({ description: "The site secret (`ssk_`): shown now and never again" })

export const CreatedSite = Schema.Struct({ site: Site, secret: Secret }).annotate({
  identifier: "CreatedSite",
  description: "The new site and its secret"
})
export type CreatedSite = typeof CreatedSite.Type

export const RotatedSecret = Schema.Struct({ secret: Secret }).annotate({
  identifier: "RotatedSecret",
  description: "The new secret; the old one works nowhere within a second"
})

export const SiteList = Schema.Struct({ sites: Schema.Array(Site) }).annotate({
  identifier: "SiteList",
  description: "The caller's own sites, oldest first"
})
