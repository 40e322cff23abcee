import { assert, describe, it } from "@effect/vitest"
import { FrameReader, frameOf } from "#src/infra/workers/JobFrames.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"

const bytesOf = (values: ReadonlyArray<unknown>): Buffer => Buffer.concat(values.flatMap(frameOf))

const values = [
  undefined,
  "ü\ud800",
  { list: [1, 2n, new Date(3)], map: new Map([["a", new Set([NaN])]]) },
  new Uint8Array(0),
  { one: new Uint8Array([1, 2, 3]), other: [new Uint8Array(70_000).fill(9), new Uint8Array([4])] }
]

describe("values on a stream between processes", () => {
  it("arrive as they were, in pieces of any size", () => {
    const stream = bytesOf(values)
    const random = new SeededRandom(18)
    for (const most of [1, 7, 5_000, stream.length]) {
      const arrived: Array<unknown> = []
      const reader = new FrameReader((value) => arrived.push(value), Infinity)
      for (let place = 0; place < stream.length;) {
        const length = 1 + random.below(most)
        reader.push(stream.subarray(place, place + length))
        place += length
      }
      assert.deepStrictEqual(arrived, values)
    }
  })

  it("are sent without a copy of their bytes, the part of a buffer alone", () => {
    const bytes = new Uint8Array(100).subarray(20, 40)
    assert.include(frameOf({ bytes }), bytes)
    let arrived: unknown
    new FrameReader((value) => (arrived = value), Infinity).push(bytesOf([{ bytes }]))
    assert.deepStrictEqual(arrived, { bytes: new Uint8Array(20) })
  })

  it("are refused where they are too large, before memory is taken for them, or have another array", () => {
    const reader = () => new FrameReader(() => assert.fail("it is too large"), 1_000)
    assert.throws(() => reader().push(bytesOf([new Uint8Array(1_001)])), /larger than 1000 bytes/)
    assert.throws(() => reader().push(Uint8Array.of(255, 255, 255, 255)), /too many parts/)
    assert.throws(() => frameOf(new Float64Array(1)), /a Float64Array cannot be sent/)
  })
})
