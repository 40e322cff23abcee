/** What the API answers with, as its schemas have it; nothing of them is in the built page. */
export type { Site } from "#schemas/analytics/Site.ts"
export type { Realtime, SiteStats, Summary } from "#schemas/analytics/Stats.ts"
import type { Drops as DropsSchema } from "#schemas/analytics/Drops.ts"
import type { CreatedSite as Created, Site } from "#schemas/analytics/Site.ts"

export type CreatedSite = Created
export type Drops = typeof DropsSchema.Type
export type { DropReason, BotCategory } from "#schemas/analytics/Drops.ts"

export interface SiteList {
  readonly sites: ReadonlyArray<Site>
}

export interface BreakdownRow {
  /** null where it is unknown */
  readonly value: string | null
  readonly visitors: number
  readonly pageviews: number
  readonly count: number
}

export interface Breakdown {
  readonly dimension: string
  readonly rows: ReadonlyArray<BreakdownRow>
}

/** `/readyz`, with 200 and with 503 alike. */
export interface Readiness {
  readonly status: "ready" | "unready" | "draining"
  readonly components: Readonly<Record<string, RoomComponent>>
}

export interface RoomComponent {
  readonly status: "up" | "degraded" | "down"
  readonly detail?: string
}
