import { assert, describe, it } from "@effect/vitest"
import { CallExchange } from "#src/llm/calls/CallExchange.ts"
import { internalError } from "#src/llm/calls/CallFault.ts"
import { ClientStream } from "#src/llm/calls/ClientStream.ts"
import type { HotReply } from "#src/front/HotRoute.ts"
import { limits } from "#src/Limits.ts"
import { readChunk } from "#streams/llm/ChatChunk.ts"

describe("a call that dies amid its stream", () => {
  it("ends the stream with an error, and is answered nothing else", () => {
    const written: Array<string> = []
    let isEnded = false
    const reply: HotReply = {
      aborted: false,
      send: () => assert.fail("the stream is the answer"),
      stream: () => ({
        write: (piece) => written.push(Buffer.from(piece).toString("utf8")) > 0,
        onDrain: () => undefined,
        end: (piece = "") => {
          written.push(Buffer.from(piece).toString("utf8"))
          isEnded = true
        },
        bufferedBytes: 0
      }),
      onAbort: () => undefined
    }
    const request = {
      method: "POST",
      path: "/",
      query: "",
      remoteAddress: "",
      isProxied: false,
      header: () => ""
    }
    const exchange = new CallExchange(request, new Uint8Array(0), reply)
    const nothing = () => undefined
    exchange.stream = new ClientStream(reply, [], limits, nothing, nothing)
    exchange.stream.write("data: a first word\n\n")
    exchange.fail(internalError(exchange.requestId))
    assert.isTrue(isEnded)
    const [error = "", done] = (written.at(-1) ?? "").split("\n\n")
    const chunk = readChunk(error.slice("data: ".length))
    assert.strictEqual(chunk?.finishReason, "error")
    assert.include(chunk?.error?.message, exchange.requestId)
    assert.strictEqual(done, "data: [DONE]")
  })
})
