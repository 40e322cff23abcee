import { assert, it } from "@effect/vitest"
import { readEmbeddingsRequest } from "#src/llm/requests/EmbeddingsRequest.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"

it("passes embeddings on without a list of further models: the key may not be allowed to use them", () => {
  const sound = { model: "acme/embed", input: "hello", user: "u" }
  const request = readEmbeddingsRequest({ ...sound, models: ["acme/secret"] })
  assert.deepStrictEqual(request instanceof RequestFault ? request : request.body, sound)
})
