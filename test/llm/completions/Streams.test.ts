import { assert, layer } from "@effect/vitest"
import { countTokens } from "gpt-tokenizer/encoding/o200k_base"
import { until } from "#test/harness/Eventually.ts"
import { readStream } from "../ChatClient.ts"
import { done, event, finishes, recordedUsage, says, streamOf, tells } from "../upstream/Recordings.ts"
import { chunk, lastChunk, openEndedHead, type Step, streamHead } from "../upstream/ScriptedUpstream.ts"
import { modelEntry, ScriptedServer } from "../upstream/ScriptedServer.ts"
import { chargeIn, onStage, spends } from "./RoutedServer.ts"
import { answersWith, plainSteps, priceOf, tokens } from "./Scripts.ts"

const [model, second, sees] = ["stream/one", "stream/two", "stream/sees"]
const architecture = { input_modalities: ["text", "image"], output_modalities: ["text"] }
const large = "stream/large"
const models = [
  ...[model, second].map((id) => modelEntry(id)).concat(modelEntry(large, { context_length: 10_000_000 })),
  modelEntry(sees, { architecture })
]
const limits = {
  streamHeadMillis: 500,
  keepAliveMillis: 100,
  firstTokenMillis: 5_000,
  lastFirstTokenMillis: 5_000,
  streamSilenceMillis: 5_000
}
const keepAlive = ": keep-alive\n\n"
const streaming = { stream: true, max_tokens: 100 }

const steps = (...all: ReadonlyArray<string | number>): ReadonlyArray<Step> => [
  { send: streamHead },
  ...all.map((one) => (typeof one === "number" ? { pauseMillis: one } : { send: chunk(one) })),
  { send: lastChunk }
]
const dies: Step = { end: "reset" }

layer(ScriptedServer.layer(models, { limits }), {
  excludeTestServices: true
})("a streamed completion", (it) => {
  it.effect("is the upstream's content byte for byte, then the summary and [DONE]", () =>
    onStage(async ({ caller, play }) => {
      const odd = [
        `data: {"choices" : [{"index":0,"delta":{"role":"assistant","content":""}}], "x_own":1e3}\n\n`,
        `event: message\r\ndata:{"id":"a","choices":[{"index":0,"delta":{"content":"\\u00fc\\n \\"usage\\":1"}}],"usage":null}\r\n\r\n`,
        `data: {"choices":[{"index":1,"delta":{"content":"世界 👋"}}],"error":null}\nevent: x\n\n`,
        `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}\n\n`,
        `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls","native_finish_reason":"x"}]}\n\n`
      ]
      play({
        [model]: () => [{ send: streamOf([": busy\n\n", ...odd, ": busy\n\n", tells(tokens(10, 5)), done]) }]
      })
      const asker = await caller(1)
      const answer = await asker.say(model, "hi", streaming, { headers: { "x-request-id": "req_of_mine" } })
      assert.strictEqual(answer.status, 200)
      assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/)
      assert.strictEqual(answer.raw.slice(0, odd.join("").length), odd.join(""))
      const [summary, end, ...more] = answer.raw.slice(odd.join("").length).split("\n\n")
      assert.deepStrictEqual([end, more], ["data: [DONE]", [""]])
      const before = "event: router.summary\ndata: "
      assert.isTrue(summary?.startsWith(before), summary)
      const { created, id, ...rest } = JSON.parse(summary?.slice(before.length) ?? "")
      assert.isNumber(created)
      assert.isString(id)
      assert.deepStrictEqual(rest, {
        object: "chat.completion.chunk",
        model,
        choices: [{ index: 0, delta: {}, finish_reason: null }],
        usage: { ...tokens(10, 5), cost: 0.0000204 },
        type: "router.summary",
        router: {
          requested: model,
          resolved: model,
          auto_route: false,
          attempts: 1,
          stages: ["primary"],
          charged_usd: 0.0000204,
          covered_by_subscription: false
        }
      })
      assert.strictEqual(chargeIn(answer), priceOf(10, 5))
    })
  )

  it.effect(
    "tells its usage in a chunk of its own before the summary, to whom asked for it, with what was charged as its cost",
    () =>
      onStage(async ({ caller, play }) => {
        const withCost = says("hello", { usage: recordedUsage })
        play({ [model]: () => [{ send: streamOf([withCost, finishes(), tells(recordedUsage), done]) }] })
        const asker = await caller(1)
        for (const include_usage of [true, false, undefined]) {
          const answer = await asker.say(model, "hi", { ...streaming, stream_options: { include_usage } })
          assert.notInclude(answer.raw, String(recordedUsage.cost))
          const usage = { ...recordedUsage, cost: answer.router?.charged_usd ?? 0 }
          const told = answer.frames.slice(0, -1).filter((frame) => "usage" in frame)
          assert.deepStrictEqual(
            told.map((frame) => [frame.choices, frame.usage, frame.id]),
            include_usage === true ? [[[], usage, "gen-1"]] : []
          )
          if (include_usage === true) assert.strictEqual(answer.frames.at(-2), told[0])
          assert.isDefined(answer.frames.at(-1)?.router)
        }
      })
  )

  it.effect("shows nothing of a member that fails before its first word", () =>
    onStage(async ({ caller, play }) => {
      const role = event({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })
      play({
        [model]: () => [...steps(": busy\n\n", role, 60).slice(0, -1), dies],
        [second]: answersWith("hello there", { usage: tokens(10, 5) })
      })
      const asker = await caller(1)
      const answer = await asker.say(await asker.collect([model, second]), "hi", streaming)
      assert.strictEqual(answer.text, "hello there", answer.raw)
      assert.deepInclude(answer.router, { attempts: 2, resolved: second })
      assert.isTrue(answer.raw.startsWith(says("hello ")), answer.raw)
    })
  )

  it.effect("begins with comments when the first word takes long, and another member may answer still", () =>
    onStage(async ({ caller, play }) => {
      play({
        [model]: () => [{ send: streamHead }, { pauseMillis: 750 }, dies],
        [second]: answersWith("hello", { usage: tokens(10, 5) })
      })
      const asker = await caller(1)
      const answer = await asker.say(await asker.collect([model, second]), "hi", streaming)
      assert.isTrue(answer.raw.startsWith(keepAlive), answer.raw)
      assert.include(answer.raw, says("hello"))
      assert.deepInclude(answer.router, { attempts: 2, resolved: second })
    })
  )

  it.effect(
    "that has begun with comments ends with an error chunk when everybody fails, and costs nothing",
    () =>
      onStage(async ({ caller, play }) => {
        play({ [model]: () => [{ send: streamHead }, { pauseMillis: 700 }, dies] })
        const asker = await caller(1)
        const answer = await asker.say(model, "hi", streaming)
        assert.deepStrictEqual(
          [answer.status, answer.finishReason, answer.isDone],
          [200, "error", true],
          answer.raw
        )
        assert.deepInclude(answer.error, { type: "upstream_error", code: 502 })
        assert.strictEqual(chargeIn(answer), 0n)
        assert.deepStrictEqual(
          answer.frames.map(({ router }) => router !== undefined),
          [false, true]
        )
      })
  )

  it.effect("begins with comments when the images take long to be described", () =>
    onStage(async ({ caller, play }) => {
      play({
        [sees]: () => [{ pauseMillis: 750 }, ...plainSteps("A cat.", { usage: tokens(10, 5) })],
        [model]: answersWith("hello", { usage: tokens(10, 5) })
      })
      const asker = await caller(1)
      const image = { type: "image_url", image_url: { url: "https://a.example/cat.png" } }
      const messages = [{ role: "user", content: [image] }]
      const answer = await asker.say(await asker.collect([model, sees]), "", { ...streaming, messages })
      assert.isTrue(answer.raw.startsWith(keepAlive), answer.raw)
      assert.deepStrictEqual([answer.text, answer.router?.stages], ["hello", ["vision", "primary"]])
    })
  )

  it.effect("says that it is alive while the model is silent", () =>
    onStage(async ({ caller, play }) => {
      play({ [model]: () => steps(says("one "), 350, says("two"), finishes(), tells(tokens(10, 5)), done) })
      const asker = await caller(1)
      const answer = await asker.say(model, "hi", streaming)
      const [before, after] = [answer.raw.indexOf(says("one ")), answer.raw.indexOf(says("two"))]
      const between = answer.raw.slice(before + says("one ").length, after)
      assert.match(between, /^(: keep-alive\n\n)+$/)
      assert.deepStrictEqual([answer.text, answer.error], ["one two", undefined])
    })
  )

  it.effect("fails where the model ends it with an error, however it says so", () =>
    onStage(async ({ caller, play }) => {
      const asker = await caller(1)
      const failed = { code: 502, message: "The provider died" }
      for (const last of [
        event({ error: failed }),
        finishes("error"),
        finishes("error", { error: failed })
      ]) {
        play({ [model]: () => [{ send: streamOf([says("one"), last, tells(), done]) }] })
        const answer = await asker.say(model, "hi", streaming)
        assert.deepStrictEqual(
          [answer.text, answer.finishReason, answer.isDone],
          ["one", "error", true],
          answer.raw
        )
        assert.deepInclude(answer.error, { type: "upstream_error", code: 502, param: null })
        assert.deepStrictEqual([chargeIn(answer), answer.usage?.total_tokens], [0n, 0])
        const shown = answer.frames.map(({ router }) => router !== undefined)
        assert.deepStrictEqual(shown, [false, false, true])
      }
      await spends(asker, 0)
    })
  )

  it.effect("never shows a piece of an event, wherever a connection without lengths ends", () =>
    onStage(async ({ caller, play }) => {
      const events = [says("one "), says("two"), finishes(), tells(tokens(10, 5)), done]
      const whole = Buffer.from(events.join(""))
      const asker = await caller(1)
      const cutAt = async (at: number): Promise<void> => {
        const answer = await asker.say(model, "hi", { ...streaming, at })
        const shown = events
          .slice(0, 2)
          .filter((_, index) => at >= events.slice(0, index + 1).join("").length - 2)
        if (shown.length === 0) {
          // On a busy machine the head is out by then, and the error comes as a chunk.
          const { error, text } = answer
          const name = answer.status === 200 ? error?.type : error?.code
          return assert.deepStrictEqual([text, name], ["", "upstream_error"], answer.raw)
        }
        const finished = at >= events.slice(0, 3).join("").length - 2
        assert.deepStrictEqual(
          [answer.text, answer.finishReason, answer.isDone],
          [shown.length === 1 ? "one " : "one two", finished ? "stop" : "error", true],
          `cut at ${at}: ${answer.raw}`
        )
        assert.strictEqual(chargeIn(answer) > 0n, finished, "what breaks off is free")
      }
      play({
        [model]: ({ body }) => {
          const at = Number(/"at":(\d+)/.exec(body)?.[1])
          return [
            { send: Buffer.concat([Buffer.from(openEndedHead), whole.subarray(0, at)]) },
            { end: "close" }
          ]
        }
      })
      let next = 0
      const worker = async (): Promise<void> => {
        while (next < whole.length) await cutAt(next++)
      }
      await Promise.all(Array.from({ length: 8 }, worker))
    })
  )

  it.effect("that is left by its client stops the model, and is charged for what was produced", () =>
    onStage(async ({ caller, listen, play, server }) => {
      play({ [model]: () => [...steps(says("one "), says("two ")).slice(0, -1), { silence: true }] })
      const asker = await caller(1)
      const asked = listen()
      const leave = new AbortController()
      const response = await fetch(`${server.url}/api/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${asker.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "What is up?" }], ...streaming }),
        signal: leave.signal
      })
      let seen = ""
      const decoder = new TextDecoder()
      for await (const bytes of response.body ?? assert.fail("no body")) {
        seen += decoder.decode(bytes, { stream: true })
        if (seen.includes("two")) break
      }
      leave.abort()
      await until("the model was stopped", async () =>
        asked()[0]?.closedEarly === true ? undefined : "it goes on"
      )
      assert.strictEqual(readStream(seen).text, "one two ")
      await spends(asker, Number(priceOf(countTokens("What is up?"), countTokens("one two "))) / 1e12)
    })
  )

  it.effect("slows the model down to what its client takes, and loses nothing of it", () =>
    onStage(async ({ caller, play, server }) => {
      const piece = says("x".repeat(64 * 1024))
      const pieces = 400
      let sent = 0
      play({
        [large]: function* () {
          yield { send: streamHead }
          for (; sent < pieces; sent++) yield { send: chunk(piece) }
          for (const last of [finishes(), tells(tokens(10, 5)), done, ""]) yield { send: chunk(last) }
        }
      })
      const asker = await caller(100)
      const response = await fetch(`${server.url}/api/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${asker.key}` },
        body: JSON.stringify({
          model: large,
          messages: [{ role: "user", content: "hi" }],
          stream: true,
          max_tokens: 10_000_000
        })
      })
      let before = -1
      await until("the model waits", async () => {
        const waits = sent > 0 && sent === before
        before = sent
        return waits ? undefined : `${sent} pieces`
      })
      assert.isBelow(sent, pieces, "it was slowed down")
      // On a busy machine the model may be silent for long enough.
      const text = (await response.text()).replaceAll(keepAlive, "")
      assert.isTrue(text.startsWith(piece.repeat(pieces)))
      assert.deepInclude(readStream(text.slice(piece.length * pieces)), {
        finishReason: "stop",
        error: undefined
      })
      await spends(asker, Number(priceOf(10, 5)) / 1e12)
    })
  )

  it.effect(
    "that is left before its first word, or a plain one, stops the model, and costs what it may have read and said",
    () =>
      onStage(async ({ caller, listen, play }) => {
        play({ [model]: () => [{ silence: true }] })
        const asker = await caller(1)
        const asked = listen()
        for (const [index, fields] of [streaming, { max_tokens: 100 }].entries()) {
          const leave = new AbortController()
          const left = asker.say(model, "hi", fields, { signal: leave.signal }).then(
            () => "answered",
            (error: Error) => error.name
          )
          await until("it is under way", async () => (asked().length > index ? undefined : "not asked"))
          leave.abort()
          assert.strictEqual(await left, "AbortError")
          await until("the model was stopped", async () =>
            asked()[index]?.closedEarly === true ? undefined : "it goes on"
          )
        }
        play({ [model]: answersWith("hello", { usage: tokens(10, 5) }) })
        const after = await asker.say(model, "hi", streaming)
        assert.strictEqual(chargeIn(after), priceOf(10, 5))
        // Nothing of a stream is unseen but what is thought; a plain answer is, for as long as it was waited for.
        let spent = 0
        await until("everything is booked", async () => {
          spent = (await asker.credits()).lifetime_spent_usd
          return spent >= Number(priceOf(12, 5)) / 1e12 ? undefined : `${spent} USD`
        })
        const left = Math.round(spent * 1e12) - Number(priceOf(10, 5)) - Number(priceOf(1, 0))
        assert.isAtLeast(left, Number(priceOf(1, 0)))
        assert.isAtMost(left, Number(priceOf(1, 100)))
      })
  )
})
