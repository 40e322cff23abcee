import { Clock, Effect } from "effect"
import type { LeaseAsk } from "#actors/llm/LeaseAsk.ts"
import type { Choice } from "#actors/llm/Hold.ts"
import { KeyDirectory } from "#src/accounts/Keys.ts"
import type { PlanRow } from "#schemas/llm/Plan.ts"
import type { AdmissionAsk } from "./Admission.ts"
import { Plans } from "./Plans.ts"
import { SubscriptionDirectory } from "./SubscriptionDirectory.ts"

export const creditsOf = (userId: string): string => `credits:${userId}`
export const capOf = (keyId: string): string => `key:${keyId}`

/** In the order in which limits are locked. */
const allowanceWindows = ["day", "hour", "week"] as const
type AllowanceWindow = (typeof allowanceWindows)[number]

export const allowanceOf = (subscriptionId: string, window: AllowanceWindow): string =>
  `allowance:${subscriptionId}:${window}`

export const isAllowance = (limit: string): boolean => limit.startsWith("allowance:")
export const isCap = (limit: string): boolean => limit.startsWith("key:")

const covers = (plan: PlanRow, { models, source }: AdmissionAsk): boolean =>
  (source === "agent" || plan.covers_direct_api) &&
  (plan.models === "*" || models.every((model) => plan.models.includes(model)))

/**
 * The means that may pay a call, in the order of preference: the allowances of a plan that covers it, then credits, up
 * to the rest of its key's limit. Undefined: it costs nothing. Source: contract/llm#payment.
 */
export const make = Effect.gen(function* () {
  const keys = yield* KeyDirectory
  const plans = yield* Plans
  const subscriptions = yield* SubscriptionDirectory
  const clock = yield* Clock.Clock

  const covering = (ask: AdmissionAsk): Choice | undefined => {
    if (ask.hasFees === true) return undefined
    const subscription = subscriptions.by("user", ask.userId)
    if (subscription === undefined) return undefined
    if (subscription.current_period_end.getTime() <= clock.currentTimeMillisUnsafe()) return undefined
    const plan = plans.get(subscription.plan_id)
    if (plan === undefined || !covers(plan, ask)) return undefined
    return {
      limits: allowanceWindows.map((window) => allowanceOf(subscription.id, window)),
      amountOf: (outputTokens) => BigInt(ask.promptTokens + outputTokens)
    }
  }

  const credits = (ask: AdmissionAsk): Choice => {
    const key = keys.get(ask.keyId)
    const isCapped = key === undefined || key.spend_limit_usd !== null
    const limits = isCapped ? [creditsOf(ask.userId), capOf(ask.keyId)] : [creditsOf(ask.userId)]
    return { limits, amountOf: ask.costOf }
  }

  return (ask: AdmissionAsk): LeaseAsk | undefined => {
    if (ask.costOf(ask.outputTokens) === 0n) return undefined
    const allowances = covering(ask)
    const money = credits(ask)
    return {
      choices: allowances === undefined ? [money] : [allowances, money],
      tokens: ask.outputTokens,
      tokensMin: Math.min(ask.outputTokensMin, ask.outputTokens)
    }
  }
})
