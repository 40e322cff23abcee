import * as Decimal from "./Decimal.ts"

/**
 * Amounts of money inside the server are integers of pico-USD (10^-12 USD), never floats. Source: contract/llm#money.
 */
export type PicoUsd = bigint

const picoDigits = 12

/** Rounded half away from zero: once a call, at the very end. */
export const picoOf = (usd: Decimal.Decimal): PicoUsd => Decimal.rounded(usd, picoDigits)

/** From a number of a request body, exactly as it was written (up to 15 digits). Undefined where it is not finite. */
export const picoOfNumber = (usd: number): PicoUsd | undefined => {
  const decimal = Decimal.fromNumber(usd)
  return decimal === undefined ? undefined : picoOf(decimal)
}

/**
 * For answers, where the contract has numbers: the double nearest to the amount. Both sides of the quotient are exact up to
 * 2^53, so that it is rounded once, as the number of the text would be.
 */
export const usdOf = (amount: PicoUsd): number =>
  amount >= -exactMax && amount <= exactMax
    ? Number(amount) / picosPerUsd
    : Number(Decimal.format({ units: amount, scale: picoDigits }))

const exactMax = BigInt(Number.MAX_SAFE_INTEGER)
const picosPerUsd = 10 ** picoDigits
