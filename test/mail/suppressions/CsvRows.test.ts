import { assert, describe, it } from "@effect/vitest"
import { csvRows } from "#streams/mail/CsvRows.ts"

const cellsOf = (text: string) => csvRows(text).rows.map(({ cells }) => cells)

describe("rows of CSV", () => {
  it("are separated by line ends of any kind; empty ones count for nothing", () => {
    for (const end of ["\r\n", "\n", "\r"])
      assert.deepStrictEqual(cellsOf(["a,b", "", "c,d", ""].join(end)), [
        ["a", "b"],
        ["c", "d"]
      ])
    assert.deepStrictEqual(cellsOf(""), [])
    assert.deepStrictEqual(cellsOf("a,\n,b"), [
      ["a", ""],
      ["", "b"]
    ])
    assert.deepStrictEqual(cellsOf("\uFEFFa"), [["a"]])
  })

  it("have quoted cells with commas, line ends and doubled quotes, and the numbers of their first lines", () => {
    const { rows } = csvRows('"a,1","say ""hi""\r\nthere"\n\nb,""\n"",c')
    assert.deepStrictEqual(rows, [
      { line: 1, cells: ["a,1", 'say "hi"\r\nthere'] },
      { line: 4, cells: ["b", ""] },
      { line: 5, cells: ["", "c"] }
    ])
  })

  it("end before a quotation mark that is not closed or in the middle of a cell, at its line", () => {
    assert.deepStrictEqual(csvRows('a\n"b'), { rows: [{ line: 1, cells: ["a"] }], faultyLine: 2 })
    for (const text of ['a"b', '"a"b', 'x,a"']) assert.strictEqual(csvRows(text).faultyLine, 1)
  })

  it("are read however long their cells are, and however many there are", () => {
    const many = 400_000
    assert.deepStrictEqual(csvRows(`"${'""'.repeat(many)}"`).rows[0]?.cells, ['"'.repeat(many)])
    assert.lengthOf(csvRows(",".repeat(many) + "a").rows[0]?.cells ?? [], many + 1)
    assert.lengthOf(csvRows("a\n".repeat(many)).rows, many)
    for (const unit of ['"', '""'])
      assert.isDefined(csvRows(`"${unit.repeat(many)}x`).faultyLine, JSON.stringify(unit))
  })
})
