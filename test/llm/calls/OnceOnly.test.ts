import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { HotReply } from "#src/front/HotRoute.ts"
import { type Idempotency, type KeptAnswer, keptLengthMax } from "#src/infra/postgres/Idempotency.ts"
import { CallExchange } from "#src/llm/calls/CallExchange.ts"
import { internalError } from "#src/llm/calls/CallFault.ts"
import { onceOnly } from "#src/llm/calls/OnceOnly.ts"

/** A request with an Idempotency-Key, and the answer to its client. */
const exchanged = () => {
  const sent: Array<{ readonly status: number; readonly body: string }> = []
  const reply: HotReply = {
    aborted: false,
    send: (status, _, body = "") => void sent.push({ status, body: Buffer.from(body).toString("utf8") }),
    stream: () => assert.fail("nothing is streamed here"),
    onAbort: () => undefined
  }
  const header = (name: string) => (name === "idempotency-key" ? "once" : "")
  const request = { method: "POST", path: "/", query: "", remoteAddress: "", isProxied: false, header }
  return { exchange: new CallExchange(request, Buffer.from("{}"), reply), sent }
}

/** No call is known; kept and released answers are recorded. */
const noAnswers = () => {
  const kept: Array<KeptAnswer> = []
  let released = 0
  const answers: Idempotency["Service"] = {
    claim: () =>
      Effect.succeed({
        _tag: "Claimed",
        finish: (answer) => Effect.sync(() => (answer === undefined ? released++ : kept.push(answer)))
      }),
    sweep: Effect.void,
    inTransaction: () => assert.fail("a call outlasts a transaction")
  }
  return { answers, kept, released: () => released }
}

const once = (answers: Idempotency["Service"], exchange: CallExchange, make: Effect.Effect<undefined>) =>
  onceOnly(answers, exchange, { keyId: "key_1", ownerId: "usr_1" }, "/", make)

describe("a call with an Idempotency-Key", () => {
  it.effect("is sent whole and not kept where the answer is too long", () =>
    Effect.gen(function* () {
      const { exchange, sent } = exchanged()
      const { answers, kept } = noAnswers()
      const long = "x".repeat(keptLengthMax + 1)
      yield* once(
        answers,
        exchange,
        Effect.sync(() => void exchange.sendJson(200, long))
      )
      assert.strictEqual(sent[0]?.body.length, long.length)
      assert.deepStrictEqual(
        kept.map(({ body }) => body),
        [null]
      )
    })
  )

  it.effect("that dies is released, and its client is told", () =>
    Effect.gen(function* () {
      const { exchange, sent } = exchanged()
      const { answers, released } = noAnswers()
      yield* Effect.exit(once(answers, exchange, Effect.die(new Error("a bug"))))
      exchange.fail(internalError(exchange.requestId))
      assert.deepStrictEqual(
        sent.map(({ status }) => status),
        [500]
      )
      assert.strictEqual(released(), 1)
    })
  )
})
