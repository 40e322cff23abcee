import * as Decimal from "#schemas/llm/Decimal.ts"
import type { Usage } from "./Tokens.ts"

/** The calls that one model has served. Aborted calls cost their output until the client had gone. */
interface Served {
  completed: number
  aborted: number
  /** refused or failed: these cost nothing */
  failed: number
  promptTokens: number
  completionTokens: number
  /** numbers of calls by their cost, as decimal text */
  costs: Map<string, number>
  /** of calls that `costs` no longer lists */
  earlierCost: Decimal.Decimal
}

/** Different amounts that are listed of a model; beyond it they are summed up. */
const costsMax = 10_000

const costOf = ({ costs, earlierCost }: Served): Decimal.Decimal => {
  let sum = earlierCost
  for (const [cost, calls] of costs) {
    const amount = Decimal.parse(cost) ?? Decimal.zero
    sum = Decimal.add(sum, Decimal.multiply(amount, { units: BigInt(calls), scale: 0 }))
  }
  return sum
}

/**
 * Everything that the sandbox has served since it started, exactly, to compare a ledger with. A ledger that adds a
 * markup to every call and rounds it can do the same with `costs`.
 */
export class Account {
  private readonly models = new Map<string, Served>()

  /** a call that was answered, or broken off by its client */
  served(model: string, usage: Usage, isAborted: boolean): void {
    const served = this.of(model)
    served[isAborted ? "aborted" : "completed"]++
    served.promptTokens += usage.promptTokens
    served.completionTokens += usage.completionTokens
    if (served.costs.size >= costsMax && !served.costs.has(usage.cost)) {
      served.earlierCost = costOf(served)
      served.costs = new Map()
    }
    served.costs.set(usage.cost, (served.costs.get(usage.cost) ?? 0) + 1)
  }

  failed(model: string): void {
    this.of(model).failed++
  }

  /** `GET /account` */
  json(): string {
    const models = Array.from(this.models, ([model, served]) => ({
      model,
      requests: served.completed + served.aborted + served.failed,
      completed: served.completed,
      aborted: served.aborted,
      failed: served.failed,
      prompt_tokens: served.promptTokens,
      completion_tokens: served.completionTokens,
      cost: Decimal.format(costOf(served)),
      costs: Object.fromEntries(served.costs),
      costs_complete: served.earlierCost.units === 0n
    }))
    const cost = Array.from(this.models.values(), costOf).reduce(Decimal.add, Decimal.zero)
    return JSON.stringify({ object: "sandbox.account", cost: Decimal.format(cost), models })
  }

  private of(model: string): Served {
    const known = this.models.get(model)
    if (known !== undefined) return known
    const served: Served = {
      completed: 0,
      aborted: 0,
      failed: 0,
      promptTokens: 0,
      completionTokens: 0,
      costs: new Map(),
      earlierCost: Decimal.zero
    }
    this.models.set(model, served)
    return served
  }
}
