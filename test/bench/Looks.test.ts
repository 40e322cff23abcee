import { assert, describe, it } from "vitest"
import { falseClaimChance } from "#bench/harness/Paired.ts"
import type { Ran, StoredRun } from "#bench/harness/Store.ts"
import type { BenchSuite } from "#bench/harness/Suite.ts"
import { differencesOf, isOpen } from "#bench/harness/Summary.ts"
import { random, type Random } from "#bench/traffic/Random.ts"
import { normal } from "./Normal.ts"
import { runTiny } from "./TinyRun.ts"

const suite: BenchSuite = {
  name: "made-up",
  about: "nothing",
  unit: "things",
  cases: [{ name: "ours", compared: "always", run: async () => ({ work: 1, elapsedMillis: 1 }) }]
}

const plain = await runTiny(suite, { rounds: 1, sides: 2 })

/** A comparison that looks twice, with such ratios of CPU in its rounds; after `firstLook` of them it was left open. */
const stored = (ratios: ReadonlyArray<number>, firstLook?: number): StoredRun => ({
  ...plain,
  begun: { ...plain.begun, looksTwice: true },
  leftOpen: firstLook === undefined ? undefined : { kind: "left open", rounds: firstLook },
  ran: ratios.flatMap((ratio, round) =>
    [ratio, 1].map((cpuMillis, side): Ran => {
      const measured = { work: 1000, elapsedMillis: 1000, cpuMillis, maxRssMiB: 1 }
      return { kind: "ran", case: "ours", round, side, tookMillis: 1, measured }
    })
  )
})

const claims = (run: StoredRun): boolean => differencesOf(run).some(({ cpuDiffers }) => cpuDiffers)

/** Looks once, and where that leaves it open a second time; whether a difference is claimed. */
const compared = (next: Random, ratio: number, noise: number, first = 6): boolean => {
  const ratios = Array.from({ length: 2 * first }, () => ratio * Math.exp(noise * normal(next)))
  const once = stored(ratios.slice(0, first))
  return isOpen(once) ? claims(stored(ratios, first)) : claims(once)
}

const shareOf = (tries: number, test: () => boolean): number =>
  Array.from({ length: tries }, test).filter(Boolean).length / tries

describe("a comparison that looks twice", () => {
  it("is open where a difference may be there, and is not where it is claimed or far from it", () => {
    const may = [0.93, 0.91, 0.9, 0.96, 0.98, 0.97]
    assert.isFalse(claims(stored(may)))
    assert.isTrue(isOpen(stored(may)))
    const clear = [0.93, 0.91, 0.92, 0.94, 0.93, 0.92]
    assert.isTrue(claims(stored(clear)))
    assert.isFalse(isOpen(stored(clear)))
    const same = [1.02, 0.98, 1.01, 0.99, 1, 1.02]
    assert.isFalse(claims(stored(same)))
    assert.isFalse(isOpen(stored(same)))
  })

  it("claims at the second look what the first left open, and keeps what the first claimed", () => {
    const may = [0.93, 0.91, 0.9, 0.96, 0.98, 0.97]
    assert.isTrue(claims(stored([...may, 0.92, 0.93, 0.94, 0.91, 0.93, 0.95], 6)))
    const clear = [0.93, 0.91, 0.92, 0.94, 0.93, 0.92]
    const later = [...clear, 1.1, 0.9, 1.1, 0.9, 1.1, 0.9]
    assert.isFalse(claims(stored(later)))
    assert.isTrue(claims(stored(later, 6)))
  })

  it("has half the chance of a false claim at each look", () => {
    const ratios = [0.93, 0.955, 0.895, 0.97, 0.905, 0.945]
    const twice = stored(ratios)
    const [{ cpu } = {}] = differencesOf(twice)
    // Of the chance, the CPU of a single case has four of five parts.
    assert.isBelow(cpu?.p ?? 1, falseClaimChance * 0.8)
    assert.isAbove(cpu?.p ?? 0, (falseClaimChance / 2) * 0.8)
    assert.isFalse(claims(twice))
    assert.isTrue(claims({ ...twice, begun: { ...twice.begun, looksTwice: false } }))
  })

  it("claims a false difference as seldom as it promises", () => {
    const next = random(20_261_130)
    assert.isAtMost(
      shareOf(4_000, () => compared(next, 1, 0.03)),
      falseClaimChance
    )
  })

  it("finds 8 % in nine of ten, where the ratios of rounds vary by 3.5 %", () => {
    const next = random(8)
    assert.isAtLeast(
      shareOf(500, () => compared(next, 1 / 1.08, 0.035)),
      0.9
    )
  })
})

describe("a plan", () => {
  const roundsMade = (isOpen: boolean) => {
    const asked: Array<number> = []
    const run = runTiny(suite, {
      rounds: 3,
      sides: 2,
      isOpen: (rounds) => {
        asked.push(rounds)
        return isOpen
      }
    })
    return run.then(({ ran }) => ({ asked, rounds: ran.length / 2 }))
  }

  it("that its rounds leave open makes as many again, once", async () => {
    assert.deepStrictEqual(await roundsMade(true), { asked: [3], rounds: 6 })
    assert.deepStrictEqual(await roundsMade(false), { asked: [3], rounds: 3 })
  })
})
