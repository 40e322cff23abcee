import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { readSend } from "#streams/notify/SendFields.ts"
import { sendCases, titleText, projectText } from "./SendCases.ts"

const base = { app: "a", message: "m" }

const faultIn = (value: unknown): string | undefined => {
  const read = readSend(value)
  return Result.isFailure(read) ? `${read.failure.field}: ${read.failure.text}` : undefined
}
const faultOf = (fields: object) => faultIn({ ...base, ...fields })
const fieldsOf = (fields: object) => Result.getOrThrow(readSend({ ...base, ...fields }))

describe("the fields of a send", () => {
  it("are taken up to their limits, and refused beyond by name", () => {
    for (const [fields, fault] of sendCases)
      assert.strictEqual(faultOf(fields), fault, JSON.stringify(fields).slice(0, 100))
    for (const value of [[], null, "x", 1]) assert.strictEqual(faultIn(value), "body: expected object")
  })

  it("tell the first fault, in the order of the fields", () => {
    assert.strictEqual(faultIn({}), "app: is required")
    assert.strictEqual(faultIn({ app: "a", title: 1 }), "message: is required")
    assert.strictEqual(faultOf({ project: [], url: "x", title: 1 }), titleText)
    assert.strictEqual(faultOf({ project: [], attachments: 1 }), projectText)
  })

  it("mean the same as null and as absent", () => {
    const names = ["title", "url", "project", "body", "bodyFormat", "priority", "attachments"]
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    const absent = fieldsOf({})
    assert.deepStrictEqual(fieldsOf(nulls), absent)
    assert.deepStrictEqual(absent, {
      app: "a",
      message: "m",
      title: null,
      url: null,
      body: null,
      bodyFormat: "auto",
      priority: "normal",
      project: null,
      attachments: []
    })
  })

  it("are read whole, objects as compact JSON", () => {
    const given = { title: "t", url: "https://e.example/?q=1", priority: "high" } as const
    const read = fieldsOf({ ...given, body: { a: [1, "é"] }, project: "p" })
    assert.deepInclude(read, { ...given, body: '{"a":[1,"é"]}', project: ["p"] })
    assert.strictEqual(fieldsOf({ message: "a\r\n\tb\u0085" }).message, "a\n\tb")
  })

  it("never throw, whatever is given, and inherit nothing", () => {
    fc.assert(fc.property(fc.anything({ withNullPrototype: true }), (value) => void readSend(value)))
    assert.strictEqual(faultIn(Object.create({ app: "a", message: "m" })), "app: is required")
  })
})
