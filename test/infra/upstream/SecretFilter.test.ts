import fc from "fast-check"
import { assert, describe, it } from "@effect/vitest"
import { SecretFilter } from "#src/infra/upstream/SecretFilter.ts"

const secret = "sk-or-v1-abcabcabd"

const filtered = (text: string, cuts: ReadonlyArray<number>, of = secret): string => {
  const bytes = Buffer.from(text)
  const filter = new SecretFilter(of)
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  const pieces = [...ends, bytes.length].map((end, index, all) => bytes.subarray(all[index - 1] ?? 0, end))
  const passed = pieces.map((piece) => filter.push(Buffer.from(piece)))
  return Buffer.concat([...passed, filter.rest()]).toString()
}

describe("the filter of the platform's key", () => {
  it("blots it out however the text is cut, and nothing else", () => {
    const part = fc.oneof(
      fc.constant(secret),
      fc.constant("sk-or-v1-abcabc"),
      fc.constant("sk-"),
      fc.string()
    )
    fc.assert(
      fc.property(fc.array(part), fc.array(fc.nat(300)), (parts, cuts) => {
        const text = parts.join("")
        assert.strictEqual(filtered(text, cuts), text.replaceAll(secret, "*".repeat(secret.length)))
      }),
      { numRuns: 2_000 }
    )
  })

  it("holds back nothing but what may be the beginning of the key", () => {
    const filter = new SecretFilter(secret)
    assert.strictEqual(filter.push(Buffer.from("data: {}\n\n")).toString(), "data: {}\n\n")
    assert.strictEqual(filter.push(Buffer.from("a sk-or")).toString(), "a ")
    assert.strictEqual(filter.push(Buffer.from("-v2")).toString(), "sk-or-v2")
    assert.strictEqual(filter.rest().toString(), "")
  })

  it("lets everything pass where there is no key, or one that is no secret", () => {
    assert.strictEqual(filtered("a test of a test", [3], "test"), "a test of a test")
    assert.strictEqual(new SecretFilter(undefined).push(Buffer.from(secret)).toString(), secret)
  })
})
