import { assert, describe, it } from "@effect/vitest"
import { packed, unpacked } from "#streams/kernel/RecordBlock.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"

describe("a block of records", () => {
  it("gives back what went in, gaps and empty payloads included", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = new SeededRandom(seed)
      let offset = random.below(2 ** 31) * 2 ** 20
      const records = Array.from({ length: random.below(20) }, () => ({
        offset: (offset += 1 + random.below(3)),
        appendedAtMillis: 1.7e12 + random.below(1e9) + 0.25,
        payload: Uint8Array.from({ length: random.below(200) }, () => random.below(256))
      }))
      const block = packed(records)
      assert.deepStrictEqual(unpacked(block), records, `seed ${seed}`)
      const within = new Uint8Array(block.length + 3)
      within.set(block, 3)
      assert.deepStrictEqual(unpacked(within.subarray(3)), records, `seed ${seed}`)
    }
  })
})
