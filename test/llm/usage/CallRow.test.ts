import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { decode, encode, fieldsOf, rowOf } from "#streams/llm/CallRow.ts"
import { callRecord } from "./Calls.ts"

const amounts = fc.bigInt({ min: 0n, max: 10n ** 20n }).map(String)
const names = fc.string({ unit: "binary", maxLength: 40 })
const draws = fc.array(
  fc.record({ limit: names, windowStart: fc.nat(), amount: amounts, leased: fc.boolean() }),
  { maxLength: 3 }
)
const losses = fc.array(
  fc.record({ reason: fc.constantFrom("beyond_hold", "free_model", "failed_try"), amount: amounts }),
  { maxLength: 2 }
)
const estimates = fc.array(
  fc.record({ reason: fc.constantFrom("no_usage", "abandoned", "cut"), amount: amounts }),
  { maxLength: 2 }
)

const calls: fc.Arbitrary<CallRecord> = fc
  .record(
    {
      requested: names,
      resolved: names,
      collection: names,
      source: fc.constantFrom("api", "agent"),
      kind: fc.constantFrom("chat", "embeddings"),
      streamed: fc.boolean(),
      success: fc.boolean(),
      status: fc.integer({ min: 200, max: 599 }),
      errorCode: names,
      attempts: fc.nat(20),
      promptTokens: fc.nat(),
      completionTokens: fc.nat(),
      cachedTokens: fc.nat(),
      firstTokenMillis: fc.option(fc.nat()),
      startedAt: fc.nat(2_000_000_000_000),
      endedAt: fc.nat(2_000_000_000_000),
      settlement: fc.record(
        { charge: amounts, loss: amounts, losses, covered: fc.boolean(), draws },
        { requiredKeys: ["charge", "loss", "covered", "draws"] }
      ),
      estimates
    },
    { noNullPrototype: true }
  )
  .map(({ estimates: some, ...fields }) =>
    callRecord({ ...fields, ...(some.length === 0 ? {} : { estimates: some }) })
  )

/** As logs had it before the record was the row. */
const encodedOf = (record: CallRecord): Buffer => Buffer.from(JSON.stringify(record))

/** Of the row that the table gets, the columns. */
const columnsIn = (bytes: Uint8Array): object => {
  const row = JSON.parse(`{${Buffer.from(fieldsOf(bytes)).toString("utf8")}`)
  const { draws: _, ended_at: __, estimates: ___, losses: ____, started_at: _____, ...columns } = row
  return columns
}

describe("a record of the log of calls", () => {
  it("is read as it was written, in its form and in the one before", () => {
    fc.assert(
      fc.property(calls, (call) => {
        assert.deepStrictEqual(decode(encode(call)), call)
        assert.deepStrictEqual(decode(encodedOf(call)), call)
        // A part of a larger buffer, as a frame of the log gives it.
        const frame = Buffer.concat([Buffer.from("ab"), encode(call), Buffer.from("c")])
        assert.deepStrictEqual(decode(frame.subarray(2, -1)), call)
      })
    )
  })

  it("is the row of the table, in its form and in the one before", () => {
    fc.assert(
      fc.property(calls, (call) => {
        const row = JSON.parse(JSON.stringify(rowOf(call)))
        assert.deepStrictEqual(columnsIn(encode(call)), row)
        assert.deepStrictEqual(columnsIn(encodedOf(call)), row)
      })
    )
  })
})
