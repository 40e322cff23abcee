import { Effect } from "effect"
import type { CreditLeases, LeaseFailure } from "#actors/llm/CreditLeases.ts"
import type { Drawn, Hold } from "#actors/llm/Hold.ts"
import { type Draw, nothingDrawn, type Settlement } from "#streams/llm/CallRecord.ts"
import {
  type Admission,
  type AdmissionAsk,
  type AdmissionRefused,
  CreditsExhausted,
  KeyLimitReached,
  LedgerAway
} from "./Admission.ts"
import { capOf, isAllowance, isCap } from "./Payment.ts"

type Actual = Parameters<Admission["settle"]>[0]

/** A call that costs nothing holds nothing. A cost all the same is the platform's loss. */
export class FreeAdmission implements Admission {
  readonly covered = false
  readonly outputTokens: number
  readonly clamped = false
  private isEnded = false

  constructor(outputTokens: number) {
    this.outputTokens = outputTokens
  }

  async extend(outputTokens: number): Promise<number> {
    return outputTokens
  }

  settle({ cost }: Actual): Settlement {
    if (this.isEnded || cost <= 0n) return nothingDrawn
    this.isEnded = true
    return { ...nothingDrawn, loss: String(cost) }
  }

  release(): void {
    this.isEnded = true
  }
}

const drawOf = ({ amount, limit, windowStart }: Drawn): Draw => ({
  limit,
  windowStart,
  amount: String(amount),
  leased: true
})

/** A call that holds allowances, or credits and part of its key's limit. */
export class HeldAdmission implements Admission {
  readonly covered: boolean
  readonly outputTokens: number
  readonly clamped: boolean
  private readonly leases: CreditLeases["Service"]
  private readonly hold: Hold
  private readonly ask: AdmissionAsk

  constructor(leases: CreditLeases["Service"], hold: Hold, ask: AdmissionAsk) {
    this.leases = leases
    this.hold = hold
    this.ask = ask
    this.covered = isAllowance(hold.choice.limits[0] ?? "")
    this.outputTokens = hold.tokens
    this.clamped = hold.tokens < ask.outputTokens
  }

  async extend(outputTokens: number): Promise<number> {
    const { ask, hold } = this
    // Refused or away: the hold stays as it was. A running stream does not wait for this promise.
    await Effect.runPromise(
      this.leases.extend(ask.userId, hold, outputTokens).pipe(
        Effect.orElseSucceed(() => undefined),
        Effect.catchCause((cause) => Effect.logError("A hold could not be extended", cause))
      )
    )
    return hold.tokens
  }

  settle({ cost, tokens }: Actual): Settlement {
    if (this.hold.ended) return nothingDrawn
    return this.covered ? this.settleTokens(cost, tokens) : this.settleCost(cost)
  }

  release(): void {
    this.hold.release()
  }

  /** Tokens beyond all allowances are lost to the platform, at their share of the cost. */
  private settleTokens(cost: bigint, tokens: number): Settlement {
    const { draws, drawn } = this.hold.settle(BigInt(Math.max(0, tokens)))
    const loss = tokens > 0 ? (cost * (BigInt(tokens) - drawn)) / BigInt(tokens) : 0n
    return { charge: "0", loss: String(loss), covered: true, draws: draws.map(drawOf) }
  }

  private settleCost(cost: bigint): Settlement {
    const due = cost > 0n ? cost : 0n
    const { draws, drawn } = this.hold.settle(due)
    const counted: Draw = {
      limit: capOf(this.ask.keyId),
      windowStart: 0,
      amount: String(drawn),
      leased: false
    }
    const isCounted = drawn > 0n && !this.hold.choice.limits.some(isCap)
    return {
      charge: String(drawn),
      loss: String(due - drawn),
      covered: false,
      draws: isCounted ? [...draws.map(drawOf), counted] : draws.map(drawOf)
    }
  }
}

export const refusalOf = (failure: LeaseFailure): AdmissionRefused => {
  if (failure._tag === "LimitsAway") return new LedgerAway({ problem: failure.problem })
  if (failure._tag !== "HoldRefused") return new LedgerAway({ problem: failure.message })
  const { busy, limit } = failure
  return isCap(limit) ? new KeyLimitReached({ busy }) : new CreditsExhausted({ busy })
}
