import { assert, layer } from "@effect/vitest"
import { done, event, finishes, recordedUsage, says, streamOf, tells } from "../upstream/Recordings.ts"
import { answer as respond, chunk, type Script, streamHead } from "../upstream/ScriptedUpstream.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { chargeIn, onStage } from "./RoutedServer.ts"
import { answersWith, priceOf, tokens } from "./Scripts.ts"

const [model, second] = ["form/one", "form/two"]
const models = [model, second].map((id) => modelEntry(id))
const limits = {
  streamHeadMillis: 500,
  firstTokenMillis: 1_500,
  lastFirstTokenMillis: 5_000,
  streamSilenceMillis: 5_000
}
const streaming = { stream: true, max_tokens: 100 }
const told = tokens(10, 5)

/** The connection is reset behind these events. */
const resetsAfter =
  (events: ReadonlyArray<string>): Script =>
  () => [
    { send: streamHead },
    ...events.map((one) => ({ send: chunk(one) })),
    { pauseMillis: 50 },
    { end: "reset" }
  ]

const plays =
  (...events: ReadonlyArray<string>): Script =>
  () => [{ send: streamOf(events) }]

/** A body with status 200, asked for as a stream and sent in one piece. */
const answersPlainly =
  (body: unknown, headers: Readonly<Record<string, string>> = {}): Script =>
  () => [{ send: respond(200, JSON.stringify(body), headers) }]

const says1 = (index: number, content: string): string =>
  event({ choices: [{ index, delta: { content }, finish_reason: null }] })
const ends1 = (index: number): string => event({ choices: [{ index, delta: {}, finish_reason: "stop" }] })

layer(ScriptedServer.layer(models, { limits }), { excludeTestServices: true })(
  "a streamed completion of an unusual upstream",
  (it) => {
    it.effect("ends with a summary that is a chunk of the stream, with what was charged as its cost", () =>
      onStage(async ({ caller, play }) => {
        play({ [model]: plays(says("hello"), finishes(), tells(recordedUsage), done) })
        const asker = await caller(1)
        const answer = await asker.say(model, "hi", streaming)
        assert.include(answer.raw, "\n\nevent: router.summary\ndata: {")
        const { router, ...summary } = answer.frames.at(-1) ?? assert.fail(answer.raw)
        const { cost: _, ...usage } = recordedUsage
        assert.deepStrictEqual(summary as object, {
          id: "gen-1",
          object: "chat.completion.chunk",
          created: 1_767_225_600,
          model: "recorded",
          choices: [{ index: 0, delta: {}, finish_reason: null }],
          usage: { ...usage, cost: router?.charged_usd },
          type: "router.summary"
        })
        assert.isAbove(router?.charged_usd ?? 0, 0)
        assert.notInclude(answer.raw, String(recordedUsage.cost))
      })
    )

    it.effect("tells its usage once: in the chunk that was asked for, or in the summary", () =>
      onStage(async ({ caller, play }) => {
        play({ [model]: plays(says("hello", { usage: told }), finishes(), tells(told), done) })
        const asker = await caller(1)
        for (const include_usage of [true, false]) {
          const answer = await asker.say(model, "hi", { ...streaming, stream_options: { include_usage } })
          const telling = answer.frames.filter(({ usage }) => usage !== undefined)
          assert.deepStrictEqual(
            telling.map(({ choices, usage }) => [choices.length, usage]),
            [[include_usage ? 0 : 1, { ...told, cost: answer.router?.charged_usd ?? 0 }]]
          )
        }
      })
    )

    it.effect("names itself where its upstream does not", () =>
      onStage(async ({ caller, play }) => {
        const anonymous = `data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n`
        play({ [model]: plays(anonymous, finishes(), tells(told), done) })
        const asker = await caller(1)
        const { frames } = await asker.say(model, "hi", streaming)
        const summary = frames.at(-1)
        assert.match(summary?.id ?? "", /^req_/)
        assert.strictEqual((summary as { model?: string }).model, model)
        assert.isTrue(Number.isInteger((summary as { created?: number }).created))
      })
    )

    it.effect("says of an error its status as a number, and its code as its type", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const cases: ReadonlyArray<readonly [string, number, string]> = [
          [event({ error: { code: 502, message: "It died" } }), 502, "upstream_error"],
          [event({ error: { code: 429, message: "Slow down" } }), 429, "rate_limit_exceeded"],
          [event({ error: { code: 400, message: "Bad" } }), 400, "invalid_request_error"],
          [
            event({ error: { code: 403, message: "Flagged", metadata: { reasons: ["violence"] } } }),
            403,
            "content_policy_violation"
          ]
        ]
        for (const [failure, code, type] of cases) {
          play({ [model]: plays(says("one"), failure) })
          const answer = await asker.say(model, "hi", streaming)
          assert.deepInclude(answer.error as object, { code, type }, answer.raw)
          assert.deepStrictEqual([answer.finishReason, answer.isDone], ["error", true])
          const [head, error, summary] = answer.frames
          assert.deepStrictEqual([error?.id, summary?.id], [head?.id, head?.id])
          assert.strictEqual(summary?.usage?.cost, 0)
        }
      })
    )

    it.effect("has not finished where the upstream names no reason but an empty one", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        for (const reason of ["", "null", "None"]) {
          const word = (text: string): string =>
            event({ choices: [{ index: 0, delta: { content: text }, finish_reason: reason }] })
          play({ [model]: resetsAfter([word("one "), word("two")]) })
          const answer = await asker.say(model, "hi", streaming)
          assert.deepStrictEqual([answer.text, answer.finishReason], ["one two", "error"], answer.raw)
          assert.strictEqual(chargeIn(answer), 0n, reason)
          play({ [model]: plays(word("one "), word("two"), finishes(), tells(told), done) })
          const whole = await asker.say(model, "hi", streaming)
          assert.deepStrictEqual([whole.error, chargeIn(whole)], [undefined, priceOf(10, 5)])
        }
      })
    )

    it.effect("has finished when all of its choices have, in whatever order", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const many = Array.from({ length: 9 }, (_, index) => says1(1, `${index} `))
        const two = { ...streaming, n: 2 }
        play({ [model]: resetsAfter([says1(0, "a"), says1(1, "b"), ends1(0), ...many]) })
        const cut = await asker.say(model, "hi", two)
        assert.strictEqual(cut.finishReason, "error", cut.raw)
        play({ [model]: resetsAfter([says1(0, "a"), ends1(0)]) })
        const missing = await asker.say(model, "hi", two)
        assert.strictEqual(missing.finishReason, "error", missing.raw)
        play({ [model]: resetsAfter([says1(0, "a"), says1(1, "b"), ends1(0), ...many, ends1(1)]) })
        const whole = await asker.say(model, "hi", two)
        assert.deepStrictEqual([whole.error, whole.finishReason], [undefined, "stop"], whole.raw)
      })
    )

    it.effect("that is answered with an error in one piece keeps its status, message and wait", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const limited = { error: { code: 429, message: "Slow down, please" } }
        play({ [model]: answersPlainly(limited, { "Retry-After": "7" }) })
        const answer = await asker.say(model, "hi", streaming)
        assert.deepStrictEqual([answer.status, answer.error?.message], [429, "Slow down, please"])
        assert.strictEqual(answer.headers.get("retry-after"), "7")
        play({ [model]: answersPlainly({ error: { code: 400, message: "No such tool" } }) })
        const blamed = await asker.say(model, "hi", streaming)
        assert.deepStrictEqual([blamed.status, blamed.error?.message], [400, "No such tool"])
        play({ [second]: answersWith("hello", { usage: told }) })
        const routed = await asker.say(await asker.collect([model, second]), "hi", streaming)
        assert.deepStrictEqual([routed.text, routed.router?.attempts], ["hello", 2])
      })
    )

    it.effect("that is answered with a whole completion is a stream all the same", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const call = { id: "call_1", type: "function", function: { name: "w", arguments: '{"a":1}' } }
        const message = { role: "assistant", content: "Grüße", tool_calls: [call] }
        const whole = {
          id: "gen-9",
          object: "chat.completion",
          created: 1_767_225_600,
          model: "recorded",
          choices: [{ index: 0, message, finish_reason: "tool_calls" }],
          usage: told
        }
        for (const headers of [{}, { "Content-Type": "text/event-stream" }]) {
          play({ [model]: answersPlainly(whole, headers) })
          const answer = await asker.say(model, "hi", {
            ...streaming,
            stream_options: { include_usage: true }
          })
          assert.deepStrictEqual(
            [answer.status, answer.text, answer.finishReason, answer.isDone],
            [200, "Grüße", "tool_calls", true],
            answer.raw
          )
          assert.deepStrictEqual(
            answer.frames.map(({ id, object }) => [id, object]),
            answer.frames.map(() => ["gen-9", "chat.completion.chunk"])
          )
          assert.deepStrictEqual(answer.frames[0]?.choices[0]?.delta.tool_calls as unknown, [
            { index: 0, ...call }
          ])
          assert.deepStrictEqual(answer.usage, { ...told, cost: answer.router?.charged_usd ?? 0 })
          assert.strictEqual(chargeIn(answer), priceOf(10, 5))
        }
      })
    )

    it.effect("waits longer for the first word of a model when no other can be tried", () =>
      onStage(async ({ caller, play }) => {
        const slow: Script = () => [
          { send: streamHead },
          { send: chunk(event({ choices: [{ index: 0, delta: { content: "" } }] })) },
          { pauseMillis: 2_200 },
          ...[says("late"), finishes(), tells(told), done, ""].map((one) => ({ send: chunk(one) }))
        ]
        play({ [model]: slow, [second]: answersWith("hello", { usage: told }) })
        const asker = await caller(1)
        assert.strictEqual((await asker.say(model, "hi", streaming)).text, "late")
        const first = await asker.say(await asker.collect([model, second]), "hi", streaming)
        assert.deepStrictEqual([first.text, first.router?.attempts], ["hello", 2])
        const last = await asker.say(await asker.collect([second, model]), "hi", streaming)
        assert.deepStrictEqual([last.text, last.router?.attempts], ["hello", 1])
      })
    )

    it.effect("is read with a BOM, and with lines that end in CR alone", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const events = [says("one "), says("two"), finishes(), tells(told), done]
        for (const sent of [
          ["\uFEFF", ...events],
          events.map((one) => one.replaceAll("\n", "\r")),
          ["\uFEFF", ...events.map((one) => one.replaceAll("\n", "\r"))]
        ]) {
          play({ [model]: plays(...sent) })
          const answer = await asker.say(model, "hi", streaming)
          assert.deepStrictEqual(
            [answer.status, answer.text, answer.finishReason, answer.isDone],
            [200, "one two", "stop", true],
            answer.raw
          )
          assert.strictEqual(chargeIn(answer), priceOf(10, 5))
        }
      })
    )

    it.effect("fails where an event of an error says so, in whatever words", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        for (const failure of [
          `event: error\ndata: {"message":"It died","code":503}\n\n`,
          `event: error\ndata: It died\n\n`,
          `data: {"object":"error","message":"It died","code":50001}\n\n`,
          `data: {"type":"error","message":"It died"}\n\n`
        ]) {
          play({ [model]: plays(says("one"), failure, done) })
          const answer = await asker.say(model, "hi", streaming)
          assert.deepStrictEqual(
            [answer.text, answer.finishReason, answer.error?.message],
            ["one", "error", "It died"],
            answer.raw
          )
          assert.strictEqual(chargeIn(answer), 0n)
        }
      })
    )

    it.effect("does not fail for an error that says nothing", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        for (const error of ["", {}, false, 0]) {
          play({ [model]: plays(says("one", { error }), finishes("stop", { error }), tells(told), done) })
          const answer = await asker.say(model, "hi", streaming)
          assert.deepStrictEqual([answer.text, answer.finishReason], ["one", "stop"], answer.raw)
          const choices = [{ index: 0, message: { content: "hello" }, finish_reason: "stop" }]
          play({ [model]: answersPlainly({ error, choices, usage: told }) })
          const plain = await asker.say(model, "hi", { max_tokens: 100 })
          assert.deepStrictEqual([plain.status, plain.text], [200, "hello"], plain.raw)
        }
      })
    )

    it.effect("shows whole numbers of tokens and no cost of the upstream's, wherever it says it", () =>
      onStage(async ({ caller, play }) => {
        const asker = await caller(1)
        const costly = { cost: 0.0123, cost_details: { upstream_inference_cost: 0.0123 } }
        const usages: ReadonlyArray<object> = [
          { prompt_tokens: 10, completion_tokens: 5 },
          { prompt_tokens: 10, completion_tokens: 5, total_tokens: "15" },
          { prompt_tokens: 10, completion_tokens: 5, total_tokens: 7 }
        ]
        for (const usage of usages) {
          const inside = [
            says("one", { x_groq: { id: "x", usage: { ...usage, ...costly } } }),
            event({
              ...costly,
              choices: [{ index: 0, delta: { content: " two" }, usage: { ...usage, ...costly } }]
            }),
            finishes("stop", { cost: 0.0123 })
          ]
          play({ [model]: plays(...inside, tells(usage), done) })
          const asks = { ...streaming, stream_options: { include_usage: true } }
          const answer = await asker.say(model, "hi", asks)
          assert.deepStrictEqual([answer.text, answer.usage?.total_tokens], ["one two", 15], answer.raw)
          assert.notInclude(answer.raw, "0.0123")
          const choices = [{ index: 0, message: { content: "hi" }, finish_reason: "stop", usage: costly }]
          play({ [model]: answersPlainly({ ...costly, choices, usage, x_groq: { usage: costly } }) })
          const plain = await asker.say(model, "hi", { max_tokens: 100 })
          assert.strictEqual(plain.usage?.total_tokens, 15, plain.raw)
          assert.notInclude(plain.raw, "0.0123")
        }
      })
    )
  }
)
