import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { KeptBuffers } from "#src/infra/shares/KeptBuffers.ts"

const bytes = 1024

/** Takes so many at once and gives them back; answers how many were new. */
const burst = (buffers: KeptBuffers, count: number, known: Set<ArrayBufferLike>): number => {
  const taken = Array.from({ length: count }, () => buffers.take())
  const fresh = taken.filter(({ buffer }) => !known.has(buffer))
  for (const one of taken) {
    known.add(one.buffer)
    buffers.giveBack(one)
  }
  return fresh.length
}

describe("buffers that are kept", () => {
  it("are used again, as many as are kept, and no memory of another length", () => {
    const buffers = new KeptBuffers(bytes, { most: 4 })
    const known = new Set<ArrayBufferLike>()
    assert.strictEqual(burst(buffers, 6, known), 6)
    assert.strictEqual(burst(buffers, 6, known), 2)
    buffers.giveBack(Buffer.allocUnsafeSlow(bytes + 1))
    assert.isTrue(Array.from({ length: 5 }, () => buffers.take()).every(({ length }) => length === bytes))
  })

  it("are more while bursts need them, and go when none has come for a while", async () => {
    const buffers = new KeptBuffers(bytes, { most: 4, burstMost: 32 }, 5)
    const known = new Set<ArrayBufferLike>()
    assert.strictEqual(burst(buffers, 40, known), 40)
    assert.strictEqual(burst(buffers, 40, known), 8)
    // Two rests: one that counts from the burst on, and one in which nothing was needed.
    for (let tries = 0; tries < 500 && buffers.count > 4; tries++) await sleep(5)
    assert.strictEqual(buffers.count, 4)
    assert.strictEqual(burst(buffers, 40, known), 36)
  })
})
