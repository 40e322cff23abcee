import type { Site } from "#schemas/analytics/Site.ts"
import type { SiteRow } from "./SiteDirectory.ts"

/** The site as its owner sees it. */
export const siteResource = (row: SiteRow): Site => ({
  id: row.id,
  name: row.name,
  domain: row.domain,
  timezone: row.timezone,
  public: row.isPublic,
  firstEventAt: row.firstEventAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})
