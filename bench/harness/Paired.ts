/**
 * Whether two sides differ by more than chance. Both tests are Student's t-tests on logarithms, so that a figure twice as
 * large and one half as large are equally far apart; a difference of up to 1 % counts as none.
 */

export interface Difference {
  /** geometric mean of the ratios: 1.08 is 8 % more */
  readonly ratio: number
  /** smallest and largest ratio of a round */
  readonly least: number
  readonly most: number
  /** probability of so large a difference by chance alone */
  readonly p: number
  readonly rounds: number
}

/** A ratio between 0.99 and 1.01 is no difference that matters. */
const margin = Math.log(1.01)

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

const variance = (values: ReadonlyArray<number>): number => {
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)
}

/**
 * Probability that Student's t with so many degrees of freedom is at least this far from 0, on either side
 * (Abramowitz and Stegun, 26.7.3 and 26.7.4). `freedom` is a whole number.
 */
export const studentTail = (t: number, freedom: number): number => {
  const angle = Math.atan(Math.abs(t) / Math.sqrt(freedom))
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)]
  const isOdd = freedom % 2 === 1
  let term = isOdd ? cosine : 1
  let series = freedom === 1 ? 0 : term
  for (let step = isOdd ? 3 : 2; step <= freedom - 2; step += 2) {
    term *= (cosine * cosine * (step - 1)) / step
    series += term
  }
  const within = isOdd ? (2 / Math.PI) * (angle + sine * series) : sine * series
  return Math.max(0, 1 - within)
}

/** Of an estimated logarithm of a ratio, beyond the margin. */
const tailOf = (difference: number, standardError: number, freedom: number): number => {
  const beyond = Math.max(0, Math.abs(difference) - margin)
  if (beyond === 0) return 1
  return standardError === 0 ? 0 : studentTail(beyond / standardError, freedom)
}

/** A round that is far off is left out on each side of every so many: a process may be slow for as long as it lives. */
const roundsPerTrim = 8

/**
 * The paired test, of one side's figure over the other's in each round, taken right after each other. Needs two rounds.
 * Student's t of a trimmed mean, with the variance of the values whose outermost were drawn in (Yuen, The two-sample
 * trimmed t for unequal population variances, Biometrika 1974).
 */
export const paired = (ratios: ReadonlyArray<number>): Difference | undefined => {
  const logs = ratios.map(Math.log).filter(Number.isFinite)
  if (logs.length < 2) return undefined
  const sorted = logs.toSorted((a, b) => a - b)
  const cut = Math.floor(logs.length / roundsPerTrim)
  const kept = sorted.slice(cut, logs.length - cut)
  const [least = 0, most = 0] = [kept[0], kept.at(-1)]
  const drawnIn = sorted.map((log) => Math.min(most, Math.max(least, log)))
  const left = kept.length
  const standardError = Math.sqrt(((logs.length - 1) * variance(drawnIn)) / (left * (left - 1)))
  const middle = mean(kept)
  return {
    ratio: Math.exp(middle),
    least: Math.exp(Math.min(...logs)),
    most: Math.exp(Math.max(...logs)),
    p: tailOf(middle, standardError, left - 1),
    rounds: logs.length
  }
}

/** Welch's test, for figures that were taken at different times. Needs two of each. */
export const unpaired = (
  ones: ReadonlyArray<number>,
  others: ReadonlyArray<number>
): Difference | undefined => {
  const [a, b] = [ones, others].map((values) => values.map(Math.log).filter(Number.isFinite))
  if (a === undefined || b === undefined || a.length < 2 || b.length < 2) return undefined
  const [shareA, shareB] = [variance(a) / a.length, variance(b) / b.length]
  const freedom = (shareA + shareB) ** 2 / (shareA ** 2 / (a.length - 1) + shareB ** 2 / (b.length - 1))
  const middle = mean(a) - mean(b)
  return {
    ratio: Math.exp(middle),
    least: Math.exp(Math.min(...a) - Math.max(...b)),
    most: Math.exp(Math.max(...a) - Math.min(...b)),
    p: tailOf(middle, Math.sqrt(shareA + shareB), Math.max(1, Math.floor(freedom) || 1)),
    rounds: Math.min(a.length, b.length)
  }
}

/** The chance of a false claim among all differences that are tested together. */
export const falseClaimChance = 0.01

/** A difference that is tested together with others. */
export interface Claim {
  readonly p: number
  /** its share of the chance of a false claim, against the other ones' */
  readonly weight: number
}

/**
 * The differences that are outside the noise when they are tested together (Holm's method, weighted): the chance that
 * any of them is claimed falsely stays below `chance`.
 */
export const claimed = (
  claims: ReadonlyArray<Claim>,
  chance: number = falseClaimChance
): ReadonlyArray<boolean> => {
  const order = claims
    .map((claim, index) => ({ ...claim, index }))
    .toSorted((a, b) => a.p / a.weight - b.p / b.weight)
  const holds = new Set<number>()
  let weightLeft = claims.reduce((sum, { weight }) => sum + weight, 0)
  for (const { index, p, weight } of order) {
    if (p > (chance * weight) / weightLeft) break
    holds.add(index)
    weightLeft -= weight
  }
  return claims.map((_, index) => holds.has(index))
}
