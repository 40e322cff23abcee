import { assert, describe, it } from "@effect/vitest"
import { copyOf, giveBack } from "#src/front/uws/PieceBuffers.ts"

const kib = 1024

describe("copies of pieces", () => {
  it("have their bytes, whatever becomes of the piece", () => {
    for (const length of [0, 1, 64 * kib - 1, 64 * kib, 512 * kib, 512 * kib + 1]) {
      const piece = Buffer.alloc(length, 97)
      const copy = copyOf(piece)
      piece.fill(98)
      assert.strictEqual(Buffer.compare(copy, Buffer.alloc(length, 97)), 0, String(length))
    }
  })

  it("of long ones are made in buffers that were given back, and in no other's", () => {
    const [one, other] = [copyOf(Buffer.alloc(100 * kib, 97)), copyOf(Buffer.alloc(100 * kib, 98))]
    assert.notStrictEqual(one.buffer, other.buffer)
    giveBack(one)
    const third = copyOf(Buffer.alloc(300 * kib, 99))
    assert.strictEqual(third.buffer, one.buffer)
    assert.strictEqual(third.length, 300 * kib)
    assert.strictEqual(other[100 * kib - 1], 98)
    for (const copy of [other, third]) giveBack(copy)
  })

  it("leave their buffers behind, as many as a burst had, and short copies none", () => {
    const copies = Array.from({ length: 80 }, () => copyOf(Buffer.alloc(64 * kib)))
    const buffers = new Set(copies.map(({ buffer }) => buffer))
    for (const copy of [...copies, copyOf(Buffer.from("short"))]) giveBack(copy)
    const again = Array.from({ length: 81 }, () => copyOf(Buffer.alloc(64 * kib)))
    assert.strictEqual(again.filter(({ buffer }) => buffers.has(buffer)).length, 80)
    for (const copy of again) giveBack(copy)
  })
})
