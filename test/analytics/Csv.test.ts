import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { csv } from "#src/http/Csv.ts"
import { TestServer, type Answer } from "#test/harness/TestServer.ts"
import { makeSite } from "./SiteProbe.ts"
import { threeVisits } from "./SiteVisits.ts"

const live = { excludeTestServices: true } as const

/** Reads what RFC 4180 says: records end in CRLF; a cell in quotes holds anything, with its quotes doubled. */
const parseCsv = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const records: Array<ReadonlyArray<string>> = []
  let cells: Array<string> = []
  const cellPattern = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy
  for (let at = 0; at < text.length; at = cellPattern.lastIndex) {
    const found = cellPattern.exec(text)
    assert.isNotNull(found, `no cell at ${at} of ${JSON.stringify(text)}`)
    cells.push(found?.[1]?.replaceAll('""', '"') ?? found?.[2] ?? "")
    if (found?.[3] !== "\r\n") continue
    records.push(cells)
    cells = []
  }
  return records
}

describe("csv", () => {
  it("is RFC 4180: a line of names, then rows, each ended by CRLF, and cells come back as they were", () => {
    const text = fc
      .stringMatching(/^[\wäé,"'\r\n ;|=+@-]{0,12}$/)
      .filter((cell) => !/(^|[;|\r\n])[\s"]*[=+\-@\r]/.test(cell))
    fc.assert(
      fc.property(fc.array(fc.record({ value: text, count: fc.integer() }), { maxLength: 5 }), (rows) => {
        assert.deepStrictEqual(parseCsv(csv(["value", "count"], rows)), [
          ["value", "count"],
          ...rows.map(({ count, value }) => [value, String(count)])
        ])
      })
    )
  })

  it("keeps a cell that a spreadsheet would take for a formula from being one", () => {
    for (const formula of ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", '=HYPERLINK("http://x","y")']) {
      assert.deepStrictEqual(parseCsv(csv(["value"], [{ value: formula }]))[1], [`'${formula}`])
    }
    for (const [text, kept] of [
      ["\t=1", "'\t'=1"],
      ["\r=1", "'\r'=1"],
      ["＝1+1", "'＝1+1"],
      ["＋1", "'＋1"],
      ["－1", "'－1"],
      ["＠SUM(A1)", "'＠SUM(A1)"],
      [";=1+1", ";'=1+1"],
      ["a;b; =1", "a;b;' =1"],
      ['x|"=1', `x|'"=1`],
      ["x\t@SUM(A1)", "x\t'@SUM(A1)"],
      ["x\r\n=1", "x\r\n'=1"],
      ["\u00a0=1", "'\u00a0=1"],
      ["a-b = c;d", "a-b = c;d"]
    ] as const) {
      const printed = csv(["value"], [{ value: text }])
      assert.deepStrictEqual(parseCsv(printed)[1], [kept])
      // Read with another separator, no cell begins with a formula either.
      for (const cell of printed.split(/[;|\t\r\n]/)) assert.notMatch(cell, /^[\s"]*[=+\-@＝＋－＠]/u, text)
    }
    assert.strictEqual(csv(["count"], [{ count: -1 }]), "count\r\n-1\r\n", "a number is none")
  })

  it("leaves the cell of what is unknown empty", () => {
    assert.strictEqual(csv(["value", "count"], [{ value: null, count: 1 }]), "value,count\r\n,1\r\n")
  })
})

const textOfCsv = ({ bytes, headers, status }: Answer): string => {
  assert.deepStrictEqual([status, headers.get("content-type")], [200, "text/csv; charset=utf-8"])
  return Buffer.from(bytes).toString()
}

layer(TestServer.shared, live)("format=csv", (it) => {
  it.effect("gives the series of stats, one line a bucket", () =>
    Effect.gen(function* () {
      const site = yield* makeSite({ timezone: "Asia/Kolkata" })
      yield* site.collect(threeVisits)
      const text = textOfCsv(yield* site.read("stats?period=7d&format=csv"))
      const [names, ...days] = parseCsv(text)
      assert.deepStrictEqual(names, ["bucket", "visitors", "visits", "pageviews"])
      assert.strictEqual(days.length, 7)
      assert.match(days[0]?.[0] ?? "", /^\d{4}-\d\d-\d\dT00:00:00\+05:30$/)
      const sums = [1, 2, 3].map((column) => days.reduce((sum, day) => sum + Number(day[column]), 0))
      assert.deepStrictEqual(sums, [3, 3, 4])
      assert.strictEqual((yield* site.read("stats?period=7d&format=json")).status, 200)
    })
  )

  it.effect("gives the rows of a breakdown, with what visitors made up quoted and harmless", () =>
    Effect.gen(function* () {
      const site = yield* makeSite()
      const names = ["=cmd()", 'say "hi", all', "plain", "zwei\nZeilen"]
      yield* site.collect(names.map((name) => ({ url: "/", name, visitor: "v" })))
      assert.strictEqual(
        textOfCsv(yield* site.read("breakdown?dimension=event&format=csv")),
        [
          "value,visitors,pageviews,count\r\n",
          "'=cmd(),1,0,1\r\n",
          "plain,1,0,1\r\n",
          '"say ""hi"", all",1,0,1\r\n',
          '"zwei\nZeilen",1,0,1\r\n'
        ].join("")
      )
      const unknown = textOfCsv(yield* site.read("breakdown?dimension=country&format=csv&limit=1"))
      assert.strictEqual(unknown, "value,visitors,pageviews,count\r\n,1,0,1\r\n")
    })
  )
})
