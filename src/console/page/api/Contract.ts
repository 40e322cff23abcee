import type {
  AgentSessionDetail as AgentSessionDetailSchema,
  AgentSessionList as AgentSessionListSchema
} from "#schemas/agents/AgentSession.ts"
import type { Stats as AccountStats } from "#schemas/accounts/AccountApi.ts"
import type { Breakdown as BreakdownSchema } from "#schemas/analytics/Breakdown.ts"
import type { Drops as DropsSchema } from "#schemas/analytics/Drops.ts"
import type { SiteList as SiteListSchema } from "#schemas/analytics/Site.ts"
import type { ModelList as ModelListSchema } from "#schemas/llm/Model.ts"
import type { Ready, Unready } from "#schemas/system/SystemApi.ts"

/** Types of the API's answers, from its schemas; nothing of them is in the built page. */
export type { BotCategory, DropReason } from "#schemas/analytics/Drops.ts"
export type { CreatedSite, Site } from "#schemas/analytics/Site.ts"
export type { Realtime, SiteStats, Summary } from "#schemas/analytics/Stats.ts"

export type { AgentInfo } from "#schemas/agents/AgentInfo.ts"
export type { AgentSession, TranscriptEntry, TranscriptToolCall } from "#schemas/agents/AgentSession.ts"
export type { CollectionModel, Model } from "#schemas/llm/Model.ts"
export type { UsageBucket, UsageOfWindow, UsageWindow, UsedModel } from "#schemas/llm/Usage.ts"

export type { CallingKey, TopUp } from "#schemas/llm/Credits.ts"
export type { OwnSubscription } from "#schemas/llm/Subscription.ts"

export type OwnAccount = Pick<AccountStats, "user">

/** Source: contract/llm#credits. */
export interface Credits {
  readonly balance_usd: number
  readonly lifetime_topped_up_usd: number
  readonly lifetime_spent_usd: number
  readonly key: { readonly spend_limit_usd: number | null; readonly spent_usd: number }
}

export type AgentSessionList = typeof AgentSessionListSchema.Type
export type AgentSessionDetail = typeof AgentSessionDetailSchema.Type

export type ModelList = typeof ModelListSchema.Type

export type SiteList = typeof SiteListSchema.Type

export type Breakdown = typeof BreakdownSchema.Type
export type BreakdownRow = Breakdown["rows"][number]

export type Drops = typeof DropsSchema.Type

/** `/readyz`, with 200 and with 503 alike. */
export type Readiness = Pick<typeof Ready.Type | Unready, "status" | "components">
export type RoomComponent = Readiness["components"][string]
