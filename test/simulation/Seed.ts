import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

/** A small, fast, seedable generator (mulberry32), so that a simulation can be run again exactly. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** in [0, 1) */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  /** an integer in [0, below) */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }
}

/**
 * Runs a simulation for `count` seeds; a failure says which seed it was. `SIMULATION_SEED=…` runs that seed alone,
 * `SIMULATION_RUNS=…` more of them.
 */
export const forSeeds = <E, R>(
  count: number,
  simulate: (random: SeededRandom, seed: number) => Effect.Effect<void, E, R>
): Effect.Effect<void, Error, R> => {
  const only = process.env["SIMULATION_SEED"]
  const runs = Number(process.env["SIMULATION_RUNS"] ?? count)
  const seeds = only === undefined ? Array.from({ length: runs }, (_, index) => index + 1) : [Number(only)]
  return Effect.forEach(
    seeds,
    (seed) =>
      Effect.catchCause(
        Effect.suspend(() => simulate(new SeededRandom(seed), seed)),
        (cause) => Effect.fail(new Error(`SIMULATION_SEED=${seed}: ${Cause.pretty(cause)}`))
      ),
    { discard: true }
  )
}
