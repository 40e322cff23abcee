import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { FileId, KeyId, SiteId, UserId } from "#schemas/core/Ids.ts"
import { hashOf, newId, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"

const many = <A>(make: () => A): ReadonlyArray<A> => Array.from({ length: 5000 }, make)

describe("ids", () => {
  it("are a prefix and 22 base62 digits, as their schemas say", () => {
    for (const [prefix, schema] of [
      ["usr", UserId],
      ["key", KeyId],
      ["fil", FileId],
      ["st", SiteId]
    ] as const) {
      for (const id of many(() => newId(prefix))) assert.isTrue(Schema.is(schema)(id), id)
    }
  })

  it("differ, and use every digit about as often in their low places", () => {
    const ids = many(() => newId("usr"))
    assert.strictEqual(new Set(ids).size, ids.length)
    assert.strictEqual(new Set(ids.flatMap((id) => Array.from(id).slice(-10))).size, 62)
  })
})

describe("secrets", () => {
  it("are a prefix and 40 uniform base62 digits", () => {
    const counts = new Map<string, number>()
    for (const secret of many(() => newSecret("sk_mr_"))) {
      assert.match(secret, /^sk_mr_[0-9A-Za-z]{40}$/)
      for (const digit of secret.slice(6)) counts.set(digit, (counts.get(digit) ?? 0) + 1)
    }
    // 200,000 draws of 62: 3,226 each, and six standard deviations are 340.
    for (const [digit, count] of counts) assert.isBelow(Math.abs(count - 200_000 / 62), 340, digit)
    assert.strictEqual(counts.size, 62)
  })

  it("are kept as SHA-256, with their first 12 characters to be told apart by", () => {
    assert.strictEqual(
      hashOf("abc").toString("hex"),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    assert.strictEqual(prefixOf("sk_0123456789abcdef"), "sk_012345678")
  })
})
