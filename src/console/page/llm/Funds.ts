import type { OwnSubscription } from "#schemas/llm/Subscription.ts"
import type { ModelList } from "#schemas/llm/Model.ts"

/** A model, or a collection. */
export type Choice = (typeof ModelList.Type)["data"][number]

/** Source: contract/llm#credits. */
export interface Credits {
  readonly balance_usd: number
  readonly lifetime_topped_up_usd: number
  readonly lifetime_spent_usd: number
  readonly key: { readonly spend_limit_usd: number | null; readonly spent_usd: number }
}

/** The means with which the asking key can pay a call. */
export interface Funds {
  /** USD: the balance, or the rest of the key's own limit if that is less */
  readonly creditsUsd: number
  /** a plan pays for calls; which models it covers, only the server knows */
  readonly hasPlan: boolean
}

export const fundsOf = (credits: Credits, own: OwnSubscription | undefined): Funds => {
  const { spend_limit_usd: limit, spent_usd: spent } = credits.key
  return {
    creditsUsd: Math.min(credits.balance_usd, limit === null ? Infinity : limit - spent),
    hasPlan:
      own?.plan?.covers_direct_api === true &&
      own.allowances.every(({ tokens_remaining }) => tokens_remaining > 0)
  }
}

/** Tokens of a first question and of its answer, as the server holds them for a short one. */
const firstCall = { prompt: 1_000, completion: 1_024 }

/** Whether a short call of the model would be paid for; undefined if only the server knows. */
export const isPayable = (choice: Choice, { creditsUsd, hasPlan }: Funds): boolean | undefined => {
  // Of a collection's members the list says nothing.
  if ("collection" in choice) return creditsUsd > 0 ? true : undefined
  if (isFree(choice)) return true
  const { completion, prompt, request } = choice.pricing
  if (prompt === "-1") return creditsUsd > 0 || hasPlan ? undefined : false
  const usd = Number(prompt) * firstCall.prompt + Number(completion) * firstCall.completion + Number(request)
  return usd <= creditsUsd ? true : hasPlan ? undefined : false
}

const isFree = (choice: Choice): boolean =>
  !("collection" in choice) && choice.categories.includes("free") && choice.pricing.prompt !== "-1"

/** Others are for one purpose, such as moderation. */
const isGeneral = (choice: Choice): boolean =>
  "collection" in choice || choice.supported_parameters.includes("tools")

/** The model to begin with: one that is sure to be paid for, before others one for any purpose. */
export const firstChoice = (choices: ReadonlyArray<Choice>, funds: Funds): Choice | undefined => {
  const sure = choices.filter((choice) => isPayable(choice, funds) === true)
  const open = choices.filter((choice) => isPayable(choice, funds) === undefined)
  return sure.find(isGeneral) ?? sure[0] ?? open[0] ?? choices[0]
}
