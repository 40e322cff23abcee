import { picoOfNumber } from "#schemas/llm/Money.ts"
import type { AskedOf } from "../upstream/ScriptedUpstream.ts"

/** The upstream's bill to the platform, kept by the upstream itself: the other side of every comparison. */
export class UpstreamAccount {
  /** pico-USD */
  billed = 0n
  calls = 0

  /** A call of so many USD, as the upstream's own invoice has it. Answers the amount, for its usage object. */
  bill(usd: number): number {
    const pico = picoOfNumber(usd)
    if (pico === undefined) throw new Error(`${usd} is no amount`)
    this.billed += pico
    this.calls++
    return usd
  }
}

/** Of a request's body; undefined where it sets no bound. */
export const maxTokensOf = ({ body }: AskedOf): number | undefined => {
  const { max_completion_tokens: newer, max_tokens: older } = JSON.parse(body) as {
    readonly max_tokens?: number
    readonly max_completion_tokens?: number
  }
  return newer ?? older
}

/** USD of a call at $30 a million tokens in and $120 a million out, to 12 decimals. */
export const dearCost = (promptTokens: number, outputTokens: number): number =>
  Number((promptTokens * 0.000_03 + outputTokens * 0.000_12).toFixed(12))

export const dearPrices = { prompt: "0.00003", completion: "0.00012" }
