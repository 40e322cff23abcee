import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { promptTokensOf } from "#src/llm/calls/Estimate.ts"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import { limits } from "#src/Limits.ts"

/** First and last code point of scripts of which tokenizers know little, and of what is no script at all. */
const blocks: ReadonlyArray<readonly [first: number, last: number]> = [
  [0x20, 0x7e],
  [0x0f00, 0x0fbc],
  [0x1000, 0x109f],
  [0x1200, 0x137c],
  [0x13a0, 0x13f5],
  [0x1800, 0x18aa],
  [0x4e00, 0x9fff],
  [0xa000, 0xa48c],
  [0xac00, 0xd7a3],
  [0xe000, 0xf8ff],
  [0x10330, 0x1034a],
  [0x12000, 0x12399],
  [0x1f300, 0x1faff],
  [0x20000, 0x2a6df],
  [0xe0100, 0xe01ef]
]

const inBlock = fc
  .constantFrom(...blocks)
  .chain(([min, max]) => fc.array(fc.integer({ min, max }), { minLength: 1, maxLength: 60 }))
  .map((points) => String.fromCodePoint(...points))

const texts = fc.array(fc.oneof(inBlock, fc.string({ unit: "binary" }), fc.lorem()), { maxLength: 6 })

const estimateOf = (fields: object): number => {
  const request = readChatRequest({ model: "acme/model", ...fields })
  if (request instanceof RequestFault) return assert.fail(request.problem)
  return promptTokensOf(request, 0, { contextLength: 0 }, limits)
}

describe("the estimate of a prompt", () => {
  it("is never below what a tokenizer counts, in whatever script and part of the request", () => {
    fc.assert(
      fc.property(texts, texts, (said, described) => {
        const tools = described.map((description) => ({
          type: "function",
          function: { name: "f", description }
        }))
        const messages = [
          { role: "user", content: said.join(" ") },
          { role: "user", content: [{ type: "text", text: said.join("") }] },
          { role: "assistant", content: null, tool_calls: tools, reasoning: said.join("\n") }
        ]
        const counted = [
          said.join(" "),
          said.join(""),
          JSON.stringify(tools),
          JSON.stringify(tools),
          said.join("\n")
        ]
          .map((text) => countTokens(text, { disallowedSpecial: new Set() }))
          .reduce((sum, tokens) => sum + tokens, 0)
        assert.isAtLeast(estimateOf({ messages, tools }), counted)
      }),
      { numRuns: 300 }
    )
  })
})
