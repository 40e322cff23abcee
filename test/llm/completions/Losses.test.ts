import { assert, describe, it } from "@effect/vitest"
import { CallTally } from "#src/llm/calls/CallTally.ts"
import { promptTokensOf } from "#src/llm/calls/Estimate.ts"
import * as CallFault from "#src/llm/calls/CallFault.ts"
import { tokensOnly } from "#src/llm/calls/CountedUsage.ts"
import { readChatRequest } from "#src/llm/requests/ChatRequest.ts"
import { RequestFault } from "#src/llm/requests/JsonRequest.ts"
import * as Decimal from "#schemas/llm/Decimal.ts"
import { limits } from "#src/Limits.ts"
import { type LossReason, nothingDrawn } from "#streams/llm/CallRecord.ts"
import { readUsage } from "#streams/llm/UpstreamUsage.ts"
import { catalogueModel } from "./Models.ts"

const told = readUsage({ prompt_tokens: 10, completion_tokens: 5, cost: 0.000003 })
const usage = told === undefined ? undefined : { usage: told, doubt: undefined }
const ofByok = readUsage({ prompt_tokens: 10, completion_tokens: 5, cost: 0, is_byok: true })

const head = {
  id: "req_1",
  userId: "usr_1",
  keyId: "key_1",
  source: "api",
  startedAt: 0,
  requested: "acme/model",
  collection: "",
  kind: "chat",
  streamed: false
} as const

const tallyOf = () => new CallTally(head, { fees: Decimal.zero, ceiling: { units: 10n, scale: 0 } })

const lost = (reason: LossReason) => ({
  ...nothingDrawn,
  loss: "3000000",
  losses: [{ reason, amount: "3000000" }]
})

const free = catalogueModel({ isFree: true })
const paid = catalogueModel()

describe("what nobody pays", () => {
  it("is the platform's loss: an extra of a free model", () => {
    assert.isDefined(usage)
    const tally = tallyOf()
    tally.add(free, usage, 0)
    const { settlement } = tally.answered(nothingDrawn)
    assert.deepStrictEqual(settlement, lost("free_model"))
  })

  it("is the platform's loss: a first stage whose call came to nothing", () => {
    assert.isDefined(usage)
    const fault = CallFault.upstreamError("The model failed")
    for (const end of [
      (tally: CallTally) => tally.refused(fault),
      (tally: CallTally) => tally.clientGone(),
      (tally: CallTally) => tally.failedMidStream("upstream_error")
    ]) {
      const tally = tallyOf()
      tally.add(paid, usage, 0)
      assert.deepStrictEqual(end(tally).settlement, lost("not_charged"))
    }
  })

  it("is nothing where the call is settled", () => {
    assert.isDefined(usage)
    const tally = tallyOf()
    tally.add(paid, usage, 0)
    const settlement = { ...nothingDrawn, charge: "3000000" }
    assert.deepStrictEqual(tally.answered(settlement).settlement, settlement)
    assert.deepStrictEqual(tally.failedMidStream("client_gone", settlement).settlement, settlement)
  })

  it("does not come of a fee: a call by the platform's own key at the provider is charged by its tokens", () => {
    assert.isUndefined(ofByok?.cost)
  })
})

describe("a try that came to nothing", () => {
  it("is the platform's loss, at what the upstream takes, and its answer is not", () => {
    assert.isDefined(usage)
    const dear = catalogueModel({ markupFactor: { units: 2n, scale: 0 } })
    const tally = tallyOf()
    tally.failed(dear, usage, 0)
    tally.add(dear, usage, 0)
    const { settlement } = tally.answered({ ...nothingDrawn, charge: "6000000" })
    assert.deepStrictEqual(settlement, { ...lost("failed_try"), charge: "6000000" })
  })

  it("is named where its cost is not the upstream's own word", () => {
    const tally = tallyOf()
    const counted = { usage: tokensOnly(10, 5), doubt: "failed_try" } as const
    tally.failed(catalogueModel({ prices: undefined }), counted, 0)
    assert.deepStrictEqual(tally.refused(CallFault.upstreamError("No")).estimates, [
      { reason: "failed_try", amount: String(10n * 30_000_000n + 5n * 120_000_000n) }
    ])
  })
})

describe("what a call holds for", () => {
  const tokensOf = (parts: ReadonlyArray<object>): number => {
    const request = readChatRequest({ model: "acme/model", messages: [{ role: "user", content: parts }] })
    return request instanceof RequestFault
      ? assert.fail(request.problem)
      : promptTokensOf(request, 0, { contextLength: 77_000 }, limits)
  }

  it("is the whole context where files, sounds and films are in it, whatever their size", () => {
    for (const part of [
      { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
      { type: "file", file: { file_data: `data:application/pdf;base64,${"A".repeat(400)}` } },
      { type: "video_url", video_url: { url: "https://a.example/film.mp4" } },
      { type: "no_such_type", text: "?" }
    ]) {
      assert.strictEqual(tokensOf([part]), 77_000, part.type)
    }
  })

  it("is the text where a part is text under another name", () => {
    for (const type of ["text", "refusal", "input_text"])
      assert.isBelow(tokensOf([{ type, text: "Hello" }]), 250)
  })
})
