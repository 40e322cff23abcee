/** Numbers from [0, 1), the same for the same seed. */
export type Random = () => number

/** mulberry32 */
export const random = (seed: number): Random => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A seed of its own for each pair, so that each day, or each kind of thing, can be drawn without the others. */
export const seedOf = (seed: number, which: number): number => {
  const mixed = Math.imul(seed ^ Math.imul(which + 1, 0x9e3779b1), 0x85ebca6b)
  return (mixed ^ (mixed >>> 13)) | 0
}

/** Box–Muller: log-normal around a median; `sigma` is the standard deviation of the logarithm. */
export const logNormal = (next: Random, median: number, sigma: number): number =>
  median * Math.exp(sigma * Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()))

export const exponential = (next: Random, mean: number): number => -mean * Math.log(1 - next())

/** 0, 1, 2, … with so small a mean. */
export const geometric = (next: Random, mean: number): number =>
  Math.floor(Math.log(1 - next()) / Math.log(mean / (1 + mean)))
