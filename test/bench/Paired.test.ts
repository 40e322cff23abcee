import { assert, describe, it } from "vitest"
import { claimed, falseClaimChance, paired, studentTail, unpaired } from "#bench/harness/Paired.ts"
import { random, type Random } from "#bench/traffic/Random.ts"
import { normal } from "./Normal.ts"

const alike = (ps: ReadonlyArray<number>) => ps.map((p) => ({ p, weight: 1 }))

/** One side's figures over the other's in so many rounds: a true ratio, with the noise of each side. */
const rounds = (next: Random, count: number, noise: number, ratio: number) =>
  Array.from({ length: count }, () => ratio * Math.exp(noise * (normal(next) - normal(next))))

describe("Student's distribution", () => {
  it("has the tails of the published tables", () => {
    for (const [t, freedom, p] of [
      [12.706, 1, 0.05],
      [4.303, 2, 0.05],
      [3.182, 3, 0.05],
      [2.571, 5, 0.05],
      [3.707, 6, 0.01],
      [3.169, 10, 0.01],
      [4.144, 10, 0.002],
      [2.704, 40, 0.01]
    ] as const)
      assert.approximately(studentTail(t, freedom), p, p * 0.01, `t ${t}, ${freedom} degrees of freedom`)
    assert.strictEqual(studentTail(0, 4), 1)
  })
})

describe("the paired test", () => {
  it("gives the geometric mean of the ratios and their range", () => {
    const found = paired([1.1, 0.9, 1.1])
    assert.approximately(found?.ratio ?? 0, (1.1 * 0.9 * 1.1) ** (1 / 3), 1e-12)
    assert.approximately(found?.least ?? 0, 0.9, 1e-12)
    assert.approximately(found?.most ?? 0, 1.1, 1e-12)
    assert.isAbove(found?.p ?? 0, 0.3)
  })

  it("takes one round, or figures that are not there, for no answer", () => {
    assert.isUndefined(paired([0.5]))
    assert.isUndefined(paired([Number.NaN, Number.NaN, 1]))
  })

  it("leaves a round out on each side of every eight, but tells of it in the range", () => {
    const ratios = [1.08, 1.07, 1.09, 1.08, 1.085, 1.075, 1.08, 0.5]
    const found = paired(ratios)
    assert.approximately(found?.ratio ?? 0, 1.078, 0.002)
    assert.strictEqual(found?.rounds, 8)
    assert.approximately(found?.least ?? 0, 0.5, 1e-12)
    assert.isBelow(found?.p ?? 1, 0.001)
    assert.isAbove(paired(ratios.slice(1))?.p ?? 0, 0.1)
  })

  it("never claims a difference of up to 1 %, however sure it is", () => {
    const found = paired(Array.from({ length: 12 }, () => 1.009))
    assert.strictEqual(found?.p, 1)
  })

  it("claims a false difference as seldom as it promises, all cases of a suite together", () => {
    const next = random(20_261_122)
    const suites = 2_000
    let false_ = 0
    for (let suite = 0; suite < suites; suite++) {
      const ps = Array.from(
        { length: 8 },
        () => paired(rounds(next, suite % 2 === 0 ? 7 : 10, 0.03, 1))?.p ?? 1
      )
      if (claimed(alike(ps)).includes(true)) false_++
    }
    assert.isAtMost(false_ / suites, falseClaimChance)
  })

  it("finds 8 % in nine of ten, with noise of 1.5 % on each side and seven rounds", () => {
    const next = random(8)
    const tries = 500
    let found = 0
    for (let one = 0; one < tries; one++) {
      const ps = [1.08, 1, 1, 1].map((ratio) => paired(rounds(next, 7, 0.015, ratio))?.p ?? 1)
      if (claimed(alike(ps))[0] === true) found++
    }
    assert.isAtLeast(found / tries, 0.9)
  })
})

describe("the unpaired test", () => {
  it("compares medians of runs that were not made together", () => {
    const found = unpaired([108, 109, 108, 107], [100, 101, 99, 100])
    assert.approximately(found?.ratio ?? 0, 1.08, 0.001)
    assert.isBelow(found?.p ?? 1, 0.01)
    assert.isUndefined(unpaired([1], [1, 2]))
  })
})

describe("claims that are tested together", () => {
  it("hold by Holm's method: each next one may be less sure, the first that fails ends it", () => {
    assert.deepStrictEqual(claimed(alike([0.004, 0.9, 0.001])), [true, false, true])
    assert.deepStrictEqual(claimed(alike([0.004, 0.004, 0.9])), [false, false, false])
    assert.deepStrictEqual(claimed([]), [])
  })

  it("may have weights: a heavier one has more of the chance", () => {
    const [cpu, throughput] = [4, 1]
    const claims = (p: number) => [
      { p, weight: cpu },
      { p: 0.5, weight: throughput }
    ]
    assert.deepStrictEqual(claimed(claims(0.0079)), [true, false])
    assert.deepStrictEqual(claimed(claims(0.0081)), [false, false])
  })
})
