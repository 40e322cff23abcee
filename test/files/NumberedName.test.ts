import { assert, describe, it } from "@effect/vitest"
import { numberedName } from "#streams/files/NumberedName.ts"

describe("the name of a file whose own is taken", () => {
  it("has a number before its extension, and no more bytes than it may", () => {
    assert.strictEqual(numberedName("a.txt", 2), "a (2).txt")
    assert.strictEqual(numberedName("a.txt", 3, ".sbx"), "a (3).txt.sbx")
    assert.strictEqual(numberedName(".profile", 2), ".profile (2)")
    assert.strictEqual(numberedName("a. sentence, not an extension", 2), "a. sentence, not an extension (2)")
    assert.strictEqual(numberedName(`${"é".repeat(125)}.txt`, 2, ".sbx"), `${"é".repeat(121)} (2).txt.sbx`)
    assert.strictEqual(Buffer.byteLength(numberedName("漢".repeat(85), 10, ".sbx")), 255)
  })
})
