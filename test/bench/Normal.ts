import type { Random } from "#bench/traffic/Random.ts"

/** A standard normal number (Box and Muller). */
export const normal = (next: Random): number =>
  Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
