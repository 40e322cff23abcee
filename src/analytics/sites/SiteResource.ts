import type { Site } from "#schemas/analytics/Site.ts"
import type { SiteRow } from "./SiteDirectory.ts"

/** The site as its owner sees it; `firstEventAt`: as `FirstAccepted` says. */
export const siteResource = (row: SiteRow, firstEventAt: Date | null): Site => ({
  id: row.id,
  name: row.name,
  domain: row.domain,
  timezone: row.timezone,
  public: row.isPublic,
  firstEventAt: firstEventAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})
