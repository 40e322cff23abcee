import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { onTestFinished, vi } from "vitest"
import { type CompletionEvent, completionEvents } from "#src/console/page/llm/CompletionEvents.ts"

const stream = [
  ": keep-alive\n\n",
  'data: {"choices":[{"delta":{"content":"Grüße, "}}]}\n\n',
  'data: {"choices":[{"delta":{"content":"🚦"},"finish_reason":"stop"}]}\r\n\r\n',
  'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n',
  'data: {"object":"router.summary","choices":[{"delta":{}}],"router":{"charged_usd":0.5}}\n\n',
  "data: [DONE]\n\n"
].join("")

const read = async (
  pieces: ReadonlyArray<Uint8Array<ArrayBuffer>>
): Promise<ReadonlyArray<CompletionEvent>> => {
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    }
  })
  const events: Array<CompletionEvent> = []
  for await (const event of completionEvents(new Response(body))) events.push(event)
  return events
}

describe("the events of a streamed completion", () => {
  it.effect("are the same wherever the stream is cut, and are neither comments nor [DONE]", () =>
    Effect.gen(function* () {
      const bytes = new TextEncoder().encode(stream)
      const whole = yield* Effect.promise(() => read([bytes]))
      assert.deepStrictEqual(
        whole.map(({ choices }) => choices?.[0]?.delta?.content),
        ["Grüße, ", "🚦", undefined, undefined]
      )
      assert.strictEqual(whole[3]?.router?.charged_usd, 0.5)
      for (let cut = 0; cut <= bytes.length; cut++) {
        const found = yield* Effect.promise(() => read([bytes.slice(0, cut), bytes.slice(cut)]))
        assert.deepStrictEqual(found, whole, `cut at ${cut}`)
      }
    })
  )

  it("end with what happened where the stream falls silent", async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(stream.slice(0, 80)))
    })
    const reading = (async () => {
      for await (const event of completionEvents(new Response(body))) assert.isDefined(event)
    })()
    const outcome = reading.catch(String)
    await vi.advanceTimersByTimeAsync(44_000)
    await vi.advanceTimersByTimeAsync(2_000)
    assert.include(await outcome, "The server has said nothing for 45 seconds")
  })
})
