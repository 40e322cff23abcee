import { assert, describe, it } from "@effect/vitest"
import { patternsFor, suppressionPatternOf } from "#streams/mail/SuppressionPattern.ts"
import { readSuppressions } from "#streams/mail/SuppressionCsv.ts"

const read = (...lines: ReadonlyArray<string>) => {
  const found = readSuppressions(lines.join("\r\n"), 10)
  if (found === undefined) throw new Error("it has too many rows")
  return found
}

describe("patterns of suppressions", () => {
  it("are addresses in lower case, or *@ and a domain", () => {
    assert.strictEqual(suppressionPatternOf("Ada.Lovelace@Example.ORG"), "ada.lovelace@example.org")
    assert.strictEqual(suppressionPatternOf("*@Bücher.example"), "*@xn--bcher-kva.example")
    assert.strictEqual(suppressionPatternOf("*@example.org"), "*@example.org")
    for (const text of ["", "ada", "a@", "@b.org", "*@", "*@org", "*@*.example.org", "a@b.org,c@d.org"])
      assert.isUndefined(suppressionPatternOf(text), text)
  })

  it("hold for an address in any case, and for all of a domain", () => {
    assert.deepStrictEqual(patternsFor("Ada@example.org"), ["ada@example.org", "*@example.org"])
  })
})

describe("suppressions of a CSV file", () => {
  it("are found by the names of their columns, in any order and case", () => {
    const { faults, suppressions } = read(
      "Note,Email,other,Reason",
      '"asked, twice",Ada@example.org,x,complaint',
      ",*@example.net,,"
    )
    assert.deepStrictEqual(faults, [])
    assert.deepStrictEqual(suppressions, [
      { pattern: "ada@example.org", reason: "complaint", note: "asked, twice" },
      { pattern: "*@example.net", reason: "manual", note: null }
    ])
  })

  it("are in the first column where no row names the columns", () => {
    assert.deepStrictEqual(
      read("a@example.org,complaint", " b@example.org ").suppressions.map(({ pattern, reason }) => [
        pattern,
        reason
      ]),
      [
        ["a@example.org", "manual"],
        ["b@example.org", "manual"]
      ]
    )
  })

  it("lose the apostrophe that keeps a spreadsheet from reading a formula", () => {
    const { suppressions } = read("address,note", "'=1+1@example.org,'@here", "'a@example.org,'b")
    assert.deepStrictEqual(
      suppressions.map(({ note, pattern }) => [pattern, note]),
      [
        ["=1+1@example.org", "@here"],
        ["'a@example.org", "'b"]
      ]
    )
  })

  it("are read although other rows have faults, which name their lines", () => {
    const { faults, suppressions } = read(
      "address,reason,note",
      "a@,manual,",
      "a@example.org,because,",
      `b@example.org,manual,${"n".repeat(201)}`,
      "c@example.org,unsubscribe,",
      'd@example.org,"manual'
    )
    assert.deepStrictEqual(
      suppressions.map(({ pattern }) => pattern),
      ["c@example.org"]
    )
    assert.deepStrictEqual(
      faults.map(({ line }) => line),
      [2, 3, 4, 6]
    )
    assert.strictEqual(faults[0]?.error, 'address: "a@" is neither an address nor *@ and a domain')
    assert.match(faults[1]?.error ?? "", /^reason: /)
    assert.match(faults[2]?.error ?? "", /^note: .*200/)
    assert.match(faults[3]?.error ?? "", /quotation mark/)
    assert.strictEqual(
      read(`${"x".repeat(200)}\u202e@`).faults[0]?.error,
      `address: "${"x".repeat(100)}…" is neither an address nor *@ and a domain`
    )
    assert.include(read("a\u202eb@").faults[0]?.error ?? "", String.raw`"a\u{202e}b@"`)
  })

  it("are so many at most, the names of columns not counted", () => {
    const rows = Array.from({ length: 10 }, (_, n) => `a${n}@example.org`)
    assert.lengthOf(read("address", ...rows).suppressions, 10)
    assert.isUndefined(readSuppressions(["address", ...rows, "b@example.org"].join("\n"), 10))
  })
})
