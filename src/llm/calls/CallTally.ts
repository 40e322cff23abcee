import { type PicoUsd, usdOf } from "#schemas/llm/Money.ts"
import {
  type CallRecord,
  type CostEstimate,
  type EstimateReason,
  type Loss,
  type LossReason,
  nothingDrawn,
  type Settlement
} from "#streams/llm/CallRecord.ts"
import type { AttemptFailure } from "./AttemptFailure.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { CatalogueModel } from "#src/llm/catalogue/CatalogueModel.ts"
import { costOfCall, type Terms } from "./Charge.ts"
import type { UpstreamUsage } from "#streams/llm/UpstreamUsage.ts"
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

/** The fields of the block. */
interface Routed {
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

/** A usage, and the reason if it is not the upstream's own. */
export interface Measured {
  readonly usage: UpstreamUsage
  readonly doubt: EstimateReason | undefined
}

/** The facts of a call that are known from its beginning. */
type CallHead = Pick<
  CallRecord,
  "id" | "userId" | "keyId" | "source" | "startedAt" | "requested" | "collection" | "kind" | "streamed"
>

/** A client that left before there was an answer. Source: nginx, which made the number common. */
const clientLeft = 499

/** Adds up a call over its stages and tries, and makes its record at the end. */
export class CallTally {
  readonly head: CallHead
  readonly #terms: Terms
  attempts = 0
  readonly stages: Array<string> = []
  /** of the answers that count, before the payer is known */
  cost: PicoUsd = 0n
  promptTokens = 0
  completionTokens = 0
  resolved = ""
  /** once the call is over */
  record: CallRecord | undefined
  /** the model of the last try, if it failed */
  #tried = ""
  readonly #reasons: Array<string> = []
  #cachedTokens = 0
  /** the upstream's cost of the answers that count */
  #own: PicoUsd = 0n
  /** costs that are not charged, with any outcome of the call */
  readonly #lost = new Map<LossReason, PicoUsd>()
  readonly #estimates: Array<CostEstimate> = []
  #firstTokenMillis: number | null = null

  constructor(head: CallHead, terms: Terms) {
    this.head = head
    this.#terms = terms
  }

  /** A model's answer counts, with its cost. */
  add(model: CatalogueModel, { doubt, usage }: Measured, images: number): void {
    const cost = costOfCall(model, usage, images, this.#terms)
    this.resolved = model.id
    this.#estimated(doubt ?? cost.doubt, cost.own)
    this.promptTokens += usage.promptTokens
    this.completionTokens += usage.completionTokens
    this.#cachedTokens += usage.cachedTokens
    if (cost.charge === 0n) return this.#lose("free_model", cost.own)
    this.cost += cost.charge
    this.#own += cost.own
  }

  /** A try came to nothing: its cost is the platform's loss. */
  failed(model: CatalogueModel, { doubt, usage }: Measured, images: number): void {
    const cost = costOfCall(model, usage, images, this.#terms)
    this.#estimated(doubt ?? cost.doubt, cost.own)
    this.#lose("failed_try", cost.own)
  }

  /** A try failed, for the log. */
  told(model: CatalogueModel, { reason }: AttemptFailure): void {
    this.#tried = model.id
    this.#reasons.push(`${model.id}: ${reason}`)
  }

  /** The reasons why the tries failed; "" if none did. */
  get reason(): string {
    return this.#reasons.join("; ")
  }

  firstTokenAt(epochMillis: number): void {
    this.#firstTokenMillis = epochMillis - this.head.startedAt
  }

  get tokens(): number {
    return this.promptTokens + this.completionTokens
  }

  answered(settlement: Settlement): CallRecord {
    return this.#record(200, "", true, settlement)
  }

  /** The answer began but did not come to its end; `settlement` if it is paid all the same. */
  failedMidStream(errorCode: string, settlement?: Settlement): CallRecord {
    return this.#record(200, errorCode, false, settlement)
  }

  refused({ code, status, type }: Problem): CallRecord {
    return this.#record(status, code ?? type, false, undefined)
  }

  /** `settlement` of the part that its client has to pay all the same. */
  clientGone(settlement?: Settlement): CallRecord {
    return this.#record(clientLeft, "client_gone", false, settlement)
  }

  #lose(reason: LossReason, amount: PicoUsd): void {
    if (amount > 0n) this.#lost.set(reason, (this.#lost.get(reason) ?? 0n) + amount)
  }

  #estimated(reason: EstimateReason | undefined, amount: PicoUsd): void {
    if (reason !== undefined) this.#estimates.push({ reason, amount: String(amount) })
  }

  /** If a call is not charged, the costs of its earlier stages are the platform's loss. */
  #settled(settlement: Settlement | undefined): Settlement {
    if (settlement === undefined) this.#lose("not_charged", this.#own)
    else this.#lose("beyond_hold", BigInt(settlement.loss))
    if (this.#lost.size === 0) return settlement ?? nothingDrawn
    const losses: ReadonlyArray<Loss> = Array.from(this.#lost, ([reason, amount]) => ({
      reason,
      amount: String(amount)
    }))
    const loss = losses.reduce((sum, { amount }) => sum + BigInt(amount), 0n)
    return { ...(settlement ?? nothingDrawn), loss: String(loss), losses }
  }

  #record(
    status: number,
    errorCode: string,
    success: boolean,
    settlement: Settlement | undefined
  ): CallRecord {
    this.record = {
      ...this.head,
      endedAt: Date.now(),
      resolved: this.resolved || this.#tried,
      status,
      errorCode,
      success,
      attempts: this.attempts,
      promptTokens: this.promptTokens,
      completionTokens: this.completionTokens,
      cachedTokens: this.#cachedTokens,
      firstTokenMillis: this.#firstTokenMillis,
      settlement: this.#settled(settlement),
      ...(this.#estimates.length === 0 ? {} : { estimates: this.#estimates })
    }
    return this.record
  }
}
