import { assert, describe, it } from "@effect/vitest"
import { CallTally } from "#src/llm/calls/CallTally.ts"
import { promptTokensOf } from "#src/llm/calls/Estimate.ts"
import * as CallFault from "#src/llm/calls/CallFault.ts"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/RequestFault.ts"
import { nothingDrawn } from "#streams/llm/CallRecord.ts"
import { readUsage } from "#streams/llm/UpstreamUsage.ts"
import { catalogueModel } from "./Models.ts"

const usage = readUsage({ prompt_tokens: 10, completion_tokens: 5, cost: 0.000003 })
const ofByok = readUsage({ prompt_tokens: 10, completion_tokens: 5, cost: 0, is_byok: true })

const tallyOf = () =>
  new CallTally({
    id: "req_1",
    userId: "usr_1",
    keyId: "key_1",
    source: "api",
    startedAt: 0,
    requested: "acme/model",
    collection: "",
    kind: "chat",
    streamed: false
  })

const free = catalogueModel({ isFree: true })
const paid = catalogueModel()

describe("what nobody pays", () => {
  it("is the platform's loss: an extra of a free model", () => {
    assert.isDefined(usage)
    const tally = tallyOf()
    tally.add(free, usage, 0)
    const { settlement } = tally.answered(nothingDrawn)
    assert.deepStrictEqual(settlement, { ...nothingDrawn, loss: "3000000" })
  })

  it("is the platform's loss: a first stage whose call came to nothing", () => {
    assert.isDefined(usage)
    const fault = CallFault.upstreamError("The model failed")
    for (const end of [
      (tally: CallTally) => tally.refused(fault),
      (tally: CallTally) => tally.clientGone(),
      (tally: CallTally) => tally.brokeOff("upstream_error")
    ]) {
      const tally = tallyOf()
      tally.add(paid, usage, 0)
      assert.deepStrictEqual(end(tally).settlement, { ...nothingDrawn, loss: "3000000" })
    }
  })

  it("is nothing where the call is settled", () => {
    assert.isDefined(usage)
    const tally = tallyOf()
    tally.add(paid, usage, 0)
    const settlement = { ...nothingDrawn, charge: "3000000" }
    assert.deepStrictEqual(tally.answered(settlement).settlement, settlement)
    assert.deepStrictEqual(tally.brokeOff("client_gone", settlement).settlement, settlement)
  })

  it("does not come of a fee: a call by the platform's own key at the provider is charged by its tokens", () => {
    assert.isUndefined(ofByok?.cost)
  })
})

describe("what a call holds for", () => {
  const tokensOf = (parts: ReadonlyArray<object>): number => {
    const request = readChatRequest({ model: "acme/model", messages: [{ role: "user", content: parts }] })
    return request instanceof RequestFault ? assert.fail(request.problem) : promptTokensOf(request, 0)
  }

  it("has files, sounds and films in it, by their size", () => {
    const small = { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }
    const large = {
      type: "file",
      file: { file_data: `data:application/pdf;base64,${"A".repeat(1_400_000)}` }
    }
    const remote = { type: "video_url", video_url: { url: "https://a.example/film.mp4" } }
    assert.isAtLeast(tokensOf([small]), 1_500)
    assert.isAtLeast(tokensOf([large]), 46_000)
    assert.isAtLeast(tokensOf([small, large, remote]), 49_000)
    assert.isBelow(tokensOf([{ type: "text", text: "Hello" }]), 100)
  })
})
