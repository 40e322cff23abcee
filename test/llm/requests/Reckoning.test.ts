import { assert, describe, it } from "@effect/vitest"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { tooLong } from "#src/llm/calls/Estimate.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import { catalogueModel } from "../completions/Models.ts"

const read = (fields: object) => {
  const request = readChatRequest({ model: "acme/one", messages: [{ role: "user", content: "" }], ...fields })
  return request instanceof RequestFault ? assert.fail(request.problem) : request
}

const long = "x".repeat(100_000)

describe("the text that a call is reckoned by", () => {
  for (const [what, fields] of [
    ["old-style functions", { functions: [{ name: "f", description: long }] }],
    [
      "the form of the answer",
      { response_format: { type: "json_schema", json_schema: { description: long } } }
    ],
    ["thoughts", { messages: [{ role: "assistant", reasoning_details: [{ text: long }] }] }],
    ["thoughts as text", { messages: [{ role: "assistant", content: "", reasoning_content: long }] }]
  ] as const) {
    it(`has ${what} in it, which the model reads and which are paid`, () => {
      assert.isAtLeast(read(fields).textLength, long.length)
    })
  }

  it("is not too long while one of the models does not say how long its context is", () => {
    const request = read({ messages: [{ role: "user", content: long }] })
    const models = [catalogueModel({ contextLength: 100 }), catalogueModel({ contextLength: 0 })]
    const target = { collection: undefined, autoRoute: false, vision: [], primary: models }
    assert.isUndefined(tooLong(request, target))
    assert.isDefined(tooLong(request, { ...target, primary: models.slice(0, 1) }))
  })
})
