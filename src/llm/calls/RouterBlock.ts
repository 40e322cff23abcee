import { usdOf } from "#schemas/llm/Money.ts"
import type { Settlement } from "#streams/llm/CallRecord.ts"
import type { CallTally } from "./CallTally.ts"
import type { Candidates } from "./Candidates.ts"

/** The additive block of an answer. Source: contract/llm#router-block. */
export interface RouterBlock {
  readonly requested: string
  readonly resolved: string
  readonly collection?: string
  readonly auto_route: boolean
  readonly attempts: number
  readonly stages: ReadonlyArray<string>
  readonly charged_usd: number
  readonly covered_by_subscription: boolean
  /** the answer ends where the credits did */
  readonly truncated?: "credits"
}

/** What the block is made of. */
export interface Routed {
  readonly request: { readonly model: string }
  readonly tally: CallTally
  readonly candidates: Pick<Candidates, "collection" | "autoRoute">
}

export const routerBlock = (
  { request, tally, candidates }: Routed,
  settlement: Settlement,
  isTruncated: boolean
): RouterBlock => ({
  requested: request.model,
  resolved: tally.resolved,
  ...(candidates.collection === undefined ? {} : { collection: candidates.collection.slug }),
  auto_route: candidates.autoRoute,
  attempts: tally.attempts,
  stages: tally.stages,
  charged_usd: usdOf(BigInt(settlement.charge)),
  covered_by_subscription: settlement.covered,
  ...(isTruncated ? { truncated: "credits" } : {})
})
