import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { decodeBase64 } from "#streams/mail/Base64.ts"

const isRefused = (text: string): boolean => Result.isFailure(decodeBase64(text))

describe("Base64", () => {
  it("decodes the vectors of RFC 4648, section 10", () => {
    const vectors = {
      "": "",
      "Zg==": "f",
      "Zm8=": "fo",
      Zm9v: "foo",
      "Zm9vYg==": "foob",
      "Zm9vYmE=": "fooba"
    }
    for (const [text, bytes] of Object.entries(vectors))
      assert.strictEqual(Result.getOrThrow(decodeBase64(text)).toString(), bytes)
  })

  it("decodes all bytes, white space aside", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom("", "\r\n", " ", "\t\n"),
        (bytes, space) => {
          const text = Buffer.from(bytes)
            .toString("base64")
            .replace(/.{1,76}/g, `$&${space}`)
          assert.deepStrictEqual(new Uint8Array(Result.getOrThrow(decodeBase64(space + text))), bytes)
        }
      )
    )
  })

  it("refuses signs that it does not have, those of URLs and of other scripts among them", () => {
    for (const text of [
      "Zm9-",
      "Zm9_",
      "Zm9.",
      "Zm9\0",
      "Zm9\u00a0",
      "Zm9\u0161",
      "data:;base64,Zm9v",
      "Zm9%"
    ])
      assert.deepStrictEqual(
        decodeBase64(text),
        Result.fail("expected base64: letters, digits, + and /, with = at the end alone"),
        JSON.stringify(text)
      )
  })

  it("refuses text that was cut off, padding that is missing, too much or in the middle", () => {
    assert.deepStrictEqual(
      decodeBase64("Zm9vYg="),
      Result.fail("expected base64 in groups of 4: 3 are left over")
    )
    for (const text of [
      "Z",
      "Zm",
      "Zm9",
      "Zm9vYg",
      "Zg=",
      "=",
      "==",
      "===",
      "====",
      "Zg===",
      "Zg==Zg==",
      "Z=g=",
      "Zm9v="
    ])
      assert.isTrue(isRefused(text), text)
  })

  it("refuses bits that would be lost", () => {
    for (const text of ["Zh==", "Zm9=", "Zm9vYh=="])
      assert.deepStrictEqual(
        decodeBase64(text),
        Result.fail("expected base64: bits after its last byte are set")
      )
  })

  it("takes exactly what it would write itself", () => {
    const text = fc.string({ unit: fc.constantFrom(..."AZaz09+/=-_ ".split("")), maxLength: 9 })
    fc.assert(
      fc.property(text, (given) => {
        const meant = given.replaceAll(" ", "")
        assert.strictEqual(isRefused(given), Buffer.from(meant, "base64").toString("base64") !== meant)
      }),
      { numRuns: 2_000 }
    )
  })

  it("decodes 25 MiB in lines of 76, and finds the last sign of them", () => {
    const bytes = Buffer.alloc(26_214_400, "lines of a file\n")
    const lines = bytes.toString("base64").replace(/.{76}/g, "$&\r\n")
    assert.isTrue(Result.getOrThrow(decodeBase64(lines)).equals(bytes))
    assert.isTrue(isRefused(`${lines.slice(0, -5)}*${lines.slice(-4)}`))
    assert.isTrue(isRefused(lines.slice(0, -1)))
  })
})
