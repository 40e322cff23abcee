import { assert, describe, it } from "@effect/vitest"
import { isNoneMatch, requestedRange } from "#src/http/ByteRanges.ts"

describe("Range of ten bytes (RFC 9110, 14.2)", () => {
  const part = (from: number, to: number) => ({ _tag: "Part", range: { from, to } })
  const wishes = (expected: object, headers: ReadonlyArray<string | undefined>): void => {
    for (const header of headers) assert.deepStrictEqual(requestedRange(header, 10), expected, header)
  }

  it("is the part that it names, cut at the end", () => {
    wishes(part(0, 10), [
      "bytes=0-9",
      "bytes=0-",
      "bytes=0-10",
      "bytes=-10",
      "bytes=-99",
      "Bytes=0-999999999999999"
    ])
    wishes(part(0, 10), ["bytes=0-99999999999999999999", `bytes=-${"9".repeat(400)}`])
    wishes(part(3, 4), ["bytes=3-3", " bytes=3-3 "])
    wishes(part(9, 10), ["bytes=9-", "bytes=-1"])
  })

  it("cannot be satisfied where it holds no byte", () => {
    wishes({ _tag: "Unsatisfiable" }, ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=99-"])
    wishes({ _tag: "Unsatisfiable" }, [
      "bytes=99999999999999999999-",
      "bytes=99999999999999999999-99999999999999999999",
      `bytes=${"9".repeat(400)}-`
    ])
    assert.deepStrictEqual(requestedRange("bytes=0-", 0), { _tag: "Unsatisfiable" })
  })

  it("is the whole where there is none, more than one, or one that means nothing", () => {
    const nothing = [undefined, "", "bytes=", "bytes=-", "bytes=5-4", "bytes=a-b", "lines=0-1", "0-1"]
    wishes({ _tag: "Whole" }, [...nothing, "bytes=0-1,3-4", "bytes=0-1, 3-4"])
  })
})

describe("If-None-Match (RFC 9110, 13.1.2)", () => {
  it("names the tag in a list, weakly, or any by *", () => {
    for (const header of ['"a"', 'W/"a"', '"x", "a"', '"x",W/"a" ', "*"])
      assert.isTrue(isNoneMatch(header, '"a"'))
    for (const header of [undefined, "", "a", '"b"', '"a']) assert.isFalse(isNoneMatch(header, '"a"'), header)
  })
})
