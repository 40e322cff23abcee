import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { chunkOf, errorIn } from "#streams/llm/ChatChunk.ts"
import { isJsonRecord } from "#schemas/core/JsonRecord.ts"

const reason = fc.constantFrom<unknown>(undefined, null, "", "none", "stop", "error", 7)
const choice = fc.oneof(
  fc.record({ index: fc.nat(3), delta: fc.constant({ content: "a" }), finish_reason: reason }),
  fc.constantFrom<unknown>(null, "choice", {})
)
const error = fc.oneof(
  fc.constantFrom<unknown>(undefined, null, "", "broken", {}, []),
  fc.record(
    {
      message: fc.constantFrom<unknown>("broken", "", 1),
      code: fc.constantFrom<unknown>(429, "502", "odd", 200)
    },
    { requiredKeys: [] }
  )
)
const chunk = fc.record({
  object: fc.constantFrom("chat.completion.chunk", "error"),
  choices: fc.oneof(fc.array(choice, { maxLength: 3 }), fc.constantFrom<unknown>(undefined, null, "none")),
  error
})

describe("the error of a chunk", () => {
  it("is the same whether it is looked for alone or with all that the chunk says", () => {
    fc.assert(
      fc.property(chunk, (json) => {
        assert.isTrue(isJsonRecord(json))
        assert.deepStrictEqual(errorIn(json), chunkOf(json).error)
      }),
      { numRuns: 2_000 }
    )
  })
})
