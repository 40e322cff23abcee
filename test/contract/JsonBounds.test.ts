import { assert, describe, it } from "vitest"
import { jsonExcess } from "#schemas/core/JsonBounds.ts"
import { jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"

const seed = Number(process.env["SEED"] ?? Date.now() % 2_147_483_647)

const bytesOf = (json: unknown): Buffer => Buffer.from(JSON.stringify(json))

/** Members, and the values implied by commas and brackets, counted in the parsed value. */
const countsOf = (value: unknown): { readonly members: number; readonly values: number } => {
  if (typeof value !== "object" || value === null) return { members: 0, values: 0 }
  const inside = Object.values(value)
  const own = { members: Array.isArray(value) ? 0 : inside.length, values: Math.max(1, inside.length) }
  return inside
    .map(countsOf)
    .reduce((sum, one) => ({ members: sum.members + one.members, values: sum.values + one.values }), own)
}

describe("bounds of a JSON body", () => {
  it(`count what is outside of strings, whatever the strings hold (SEED=${seed})`, () => {
    const random = seededRandom(seed)
    const pick = <A>(list: ReadonlyArray<A>): A => list[Math.floor(random() * list.length)]!
    const signs = ['"', "\\", "{", "}", "[", "]", ",", ":", "a", "é", "\n", '\\"']
    const text = (): string =>
      Array.from({ length: Math.floor(random() * pick([3, 20, 32, 33, 34, 200])) }, () => pick(signs)).join(
        ""
      )
    const value = (depth: number): unknown => {
      const kind = depth > 3 ? random() * 0.6 : random()
      if (kind < 0.4) return text()
      if (kind < 0.6) return random()
      const length = Math.floor(random() * 5)
      if (kind < 0.8) return Array.from({ length }, () => value(depth + 1))
      return Object.fromEntries(Array.from({ length }, () => [text(), value(depth + 1)]))
    }
    for (let run = 0; run < 2_000; run++) {
      const json = [value(0), value(0)]
      const { members, values } = countsOf(json)
      const bytes = bytesOf(json)
      for (const one of [bytes, new Uint8Array(bytes)]) {
        assert.isUndefined(jsonExcess(one, { members, values }), bytes.toString())
        assert.include(jsonExcess(one, { members, values: values - 1 }), "values", bytes.toString())
        if (members > 0)
          assert.include(jsonExcess(one, { members: members - 1, values }), "members", bytes.toString())
      }
    }
  })

  it("hold for bytes that are no JSON, and end with them", () => {
    const bounds = { members: 1, values: 1 }
    for (const text of [
      "",
      '"',
      `"${"a".repeat(100)}`,
      `"${"\\".repeat(101)}`,
      `"${"a".repeat(40)}\\"`,
      "}}]]"
    ])
      assert.isUndefined(jsonExcess(Buffer.from(text), bounds), text)
    const deep = Buffer.from("[".repeat(jsonDepthMax + 1))
    assert.include(jsonExcess(deep, { members: 1, values: 1e9 }), "deeper")
  })
})
