import { assert, describe, it } from "@effect/vitest"
import { FairShares } from "#src/infra/shares/FairShares.ts"

const takeAll = (shares: FairShares, owner: string): number => {
  let taken = 0
  while (shares.take(owner, 1)) taken++
  return taken
}

describe("shares of what is bounded for all", () => {
  it("give one owner half, and the next ones equal parts of the rest", () => {
    const shares = new FairShares(1_000)
    assert.strictEqual(takeAll(shares, "greedy"), 500)
    assert.strictEqual(takeAll(shares, "second"), 250)
    assert.isTrue(shares.take("honest", 100))
    assert.isFalse(shares.take("greedy", 1))
    assert.strictEqual(shares.total, 850)
  })

  it("leave room for a newcomer beside any number of greedy owners that take turns", () => {
    const shares = new FairShares(1_200)
    for (let round = 0; round < 1_200; round++) {
      for (let owner = 0; owner < 11; owner++) shares.take(`greedy-${owner}`, 1)
    }
    assert.isTrue(shares.take("honest", 100))
  })

  it("give back what was taken, and forget owners that hold nothing", () => {
    const shares = new FairShares(100)
    assert.isTrue(shares.take("one", 40))
    shares.release("one", 10)
    assert.isFalse(shares.take("one", 50))
    shares.release("one", 30)
    assert.deepStrictEqual([shares.owners, shares.total], [0, 0])
    // Bytes that were never taken cannot make room.
    shares.release("one", 1_000)
    assert.strictEqual(shares.total, 0)
  })

  it("are capped for one owner where the cap is below what is free", () => {
    assert.strictEqual(takeAll(new FairShares(1_000, 70), "one"), 70)
  })
})
