import { Schema } from "effect"
import type { Site as SiteResource } from "#schemas/analytics/Site.ts"
import type { Site } from "#streams/analytics/Site.ts"

/** A row of `sites`. */
export interface SiteRow extends Site {
  readonly userId: string
  readonly name: string
  readonly timezone: string
  readonly public: boolean
  /** lower-case hexadecimal SHA-256 of the site secret */
  readonly secretHash: string
  readonly firstEventAt: Date | null
  readonly createdAt: Date
  readonly isDeleted: boolean
}

const Columns = Schema.Struct({
  id: Schema.String,
  user_id: Schema.String,
  name: Schema.String,
  domain: Schema.String,
  timezone: Schema.String,
  public: Schema.Boolean,
  secret_hash: Schema.Uint8Array,
  visitor_secret: Schema.Uint8Array,
  first_event_at: Schema.NullOr(Schema.Date),
  created_at: Schema.Date,
  deleted_at: Schema.NullOr(Schema.Date)
})

const decodeColumns = Schema.decodeUnknownSync(Schema.toType(Columns))

/** Reads a row as Postgres gives it; throws where the table has another shape. */
export const decodeSiteRow = (columns: Readonly<Record<string, unknown>>): SiteRow => {
  const row = decodeColumns(columns)
  return {
    id: row.id,
    userId: row.user_id,
    name: row.name,
    domain: row.domain,
    timezone: row.timezone,
    public: row.public,
    secretHash: Buffer.from(row.secret_hash).toString("hex"),
    visitorSecret: row.visitor_secret,
    firstEventAt: row.first_event_at,
    createdAt: row.created_at,
    isDeleted: row.deleted_at !== null
  }
}

/** The site as its owner sees it. */
export const siteResource = (row: SiteRow): SiteResource => ({
  id: row.id,
  name: row.name,
  domain: row.domain,
  timezone: row.timezone,
  public: row.public,
  firstEventAt: row.firstEventAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})
