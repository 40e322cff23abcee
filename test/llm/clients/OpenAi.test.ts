import { setTimeout as sleep } from "node:timers/promises"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { makeCaller } from "../Caller.ts"
import { until } from "#test/harness/Eventually.ts"
import {
  countingFetch,
  type SandboxServer,
  startSandboxServer,
  tinyPng,
  weatherParameters
} from "./SandboxServer.ts"

let running: SandboxServer
let client: OpenAI
beforeAll(async () => {
  running = await startSandboxServer()
  client = clientOf(running.caller.key)
})

const clientOf = (apiKey: string, options: object = {}): OpenAI =>
  new OpenAI({ apiKey, baseURL: running.baseURL, ...options })

const hello = [{ role: "user", content: "Hello there" }] as const
const echoed = `You said: "Hello there". This is sandbox/echo, a program that stands in for a language model.`

/** The error that the client throws; fails where it throws nothing. */
const thrownBy = (run: () => PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(run()).then(
    (value) => assert.fail(`it answered ${JSON.stringify(value)}`),
    (error: unknown) => error
  )

const assertThrown = (
  error: unknown,
  Expected: abstract new (...given: never) => Error,
  [status, type, code]: readonly [number, string, string | null]
): void => {
  assert.isTrue(error instanceof Expected, String(error))
  assert.deepInclude(Object(error), { status, type, code })
}

describe("the openai client, unmodified", () => {
  it("lists the models and retrieves one", async () => {
    const ids: Array<string> = []
    for await (const model of client.models.list()) ids.push(model.id)
    assert.includeMembers(ids, ["sandbox/echo", "sandbox/vision", "sandbox/embed"])
    const model = await client.models.retrieve("sandbox/echo")
    assert.deepInclude(model, { id: "sandbox/echo", object: "model", owned_by: "sandbox" })
  })

  it("completes", async () => {
    const answer = await client.chat.completions.create({ model: "sandbox/echo", messages: [...hello] })
    assert.deepStrictEqual(
      [answer.object, answer.model, answer.choices[0]?.message.role, answer.choices[0]?.finish_reason],
      ["chat.completion", "sandbox/echo", "assistant", "stop"]
    )
    assert.strictEqual(answer.choices[0]?.message.content, echoed)
    const { completion_tokens: completion = 0, prompt_tokens: prompt = 0, total_tokens } = answer.usage ?? {}
    assert.strictEqual(total_tokens, prompt + completion)
    assert.deepInclude(Object(answer).router, { resolved: "sandbox/echo", attempts: 1, stages: ["primary"] })
  })

  it("streams, word by word, with usage where it is asked for", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: [...hello],
      stream: true,
      stream_options: { include_usage: true }
    })
    let text = ""
    let chunks = 0
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ""
      usage = chunk.usage ?? usage
      chunks++
    }
    assert.strictEqual(text, echoed)
    assert.isAbove(chunks, 10)
    assert.isAbove(usage?.completion_tokens ?? 0, 10)
  })

  it("accumulates a stream with its own helper, the summary frame included", async () => {
    const stream = client.chat.completions.stream({ model: "sandbox/echo", messages: [...hello] })
    assert.strictEqual(await stream.finalContent(), echoed)
    const completion = await stream.finalChatCompletion()
    assert.strictEqual(completion.choices[0]?.finish_reason, "stop")
  })

  it("runs tools to the end, streamed and not", async () => {
    const asked: Array<unknown> = []
    const tool = {
      type: "function" as const,
      function: {
        name: "weather",
        description: "The weather of a city",
        parameters: { ...weatherParameters, required: ["city"] },
        function: (given: string) => {
          asked.push(JSON.parse(given))
          return "rain"
        }
      }
    }
    const params = {
      model: "sandbox/tools",
      messages: [{ role: "user" as const, content: "What is the weather in Oslo" }],
      tools: [tool]
    }
    const answer = "The tool weather answered: rain"
    assert.strictEqual(await client.chat.completions.runTools(params).finalContent(), answer)
    const streamed = client.chat.completions.runTools({ ...params, stream: true })
    assert.strictEqual(await streamed.finalContent(), answer)
    assert.deepStrictEqual(asked, [
      { city: "Oslo", days: 2 },
      { city: "Oslo", days: 2 }
    ])
  })

  it("shows images to a model that sees them", async () => {
    const image = { type: "image_url" as const, image_url: { url: `data:image/png;base64,${tinyPng}` } }
    const answer = await client.chat.completions.create({
      model: "sandbox/vision",
      messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, image] }]
    })
    assert.include(answer.choices[0]?.message.content, "a png image of 1x1 pixels")
  })

  it("gets JSON of its schema", async () => {
    const schema = { type: "object", properties: { city: { enum: ["Oslo", "Rome"] } } }
    const answer = await client.chat.completions.create({
      model: "sandbox/echo",
      messages: [...hello],
      response_format: { type: "json_schema", json_schema: { name: "place", schema } }
    })
    assert.deepStrictEqual(JSON.parse(answer.choices[0]?.message.content ?? ""), { city: "Oslo" })
  })

  it("embeds, decoding its own default of base64", async () => {
    const input = ["one", "two"]
    const packed = await client.embeddings.create({ model: "sandbox/embed", input, dimensions: 8 })
    const plain = await client.embeddings.create({
      model: "sandbox/embed",
      input,
      dimensions: 8,
      encoding_format: "float"
    })
    assert.deepStrictEqual(packed.data[1]?.embedding, plain.data[1]?.embedding)
    assert.deepStrictEqual([packed.data.length, packed.model], [2, "sandbox/embed"])
    assert.isAbove(packed.usage.prompt_tokens, 0)
  })

  it("aborts a stream, and with it the upstream's call; what was produced is charged", async () => {
    const { aborted } = await running.sandbox.served("sandbox/slow")
    const before = (await running.caller.credits()).lifetime_spent_usd
    const stream = await client.chat.completions.create({
      model: "sandbox/slow",
      messages: [{ role: "user", content: "Write 500 words" }],
      stream: true
    })
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content !== "") break
    }
    stream.controller.abort()
    await until("the upstream's call is aborted", async () =>
      (await running.sandbox.served("sandbox/slow")).aborted === aborted + 1 ? undefined : "it goes on"
    )
    await until("what was produced is charged", async () =>
      (await running.caller.credits()).lifetime_spent_usd > before ? undefined : "nothing is"
    )
    const { balance_usd, lifetime_spent_usd, lifetime_topped_up_usd } = await running.caller.credits()
    assert.approximately(balance_usd + lifetime_spent_usd, lifetime_topped_up_usd, 1e-12)
  })

  it("aborts a plain call, and with it the upstream's", async () => {
    const leaving = new AbortController()
    // A call that was left is read on for a moment.
    await until("no other call is under way", async () => {
      const metrics = await (await fetch(`${running.server.url}/metrics`)).text()
      return /^signalbox_model_requests_in_flight\S* 0$/m.test(metrics) ? undefined : "one is"
    })
    const asking = thrownBy(() =>
      client.chat.completions.create(
        { model: "sandbox/stalls", messages: [...hello] },
        { signal: leaving.signal }
      )
    )
    const { failed } = await running.sandbox.served("sandbox/stalls")
    await until("the call is under way", async () => {
      const metrics = await (await fetch(`${running.server.url}/metrics`)).text()
      return /^signalbox_model_requests_in_flight\S* 1$/m.test(metrics) ? undefined : "it is not"
    })
    // Admitted it is; its way to the upstream takes a moment more.
    await sleep(500)
    leaving.abort()
    assert.instanceOf(await asking, OpenAI.APIUserAbortError)
    await until("the upstream's call is aborted", async () =>
      (await running.sandbox.served("sandbox/stalls")).failed === failed + 1 ? undefined : "it goes on"
    )
  })
})

describe("the openai client throws", () => {
  const say = (api: OpenAI, model: string, more: object = {}) =>
    api.chat.completions.create({ model, messages: [...hello], ...more })

  it("AuthenticationError for a key that is none", async () => {
    const error = await thrownBy(() => say(clientOf("sk_nobody"), "sandbox/echo"))
    assertThrown(error, OpenAI.AuthenticationError, [401, "authentication_error", "invalid_api_key"])
    assert.instanceOf(await thrownBy(() => clientOf("sk_nobody").models.list()), OpenAI.AuthenticationError)
  })

  it("PermissionDeniedError for a model outside the key's scope, whether or not it exists", async () => {
    const key = await running.caller.makeKey({ kind: "router", models: ["sandbox/free"] })
    for (const model of ["sandbox/echo", "sandbox/nowhere"]) {
      const error = await thrownBy(() => say(clientOf(key), model))
      assertThrown(error, OpenAI.PermissionDeniedError, [403, "permission_error", "model_not_allowed"])
    }
    assert.include((await say(clientOf(key), "sandbox/free")).choices[0]?.message.content, "Hello there")
  })

  it("NotFoundError for an unknown model, and for one to be retrieved", async () => {
    const missing = [404, "invalid_request_error", "model_not_found"] as const
    assertThrown(await thrownBy(() => say(client, "sandbox/nowhere")), OpenAI.NotFoundError, missing)
    assertThrown(await thrownBy(() => client.models.retrieve("sandbox/no")), OpenAI.NotFoundError, missing)
  })

  it("NotFoundError where an endpoint is not served", async () => {
    const error = await thrownBy(() => client.responses.create({ model: "sandbox/echo", input: "Hello" }))
    assert.isTrue(error instanceof OpenAI.NotFoundError, String(error))
    assert.deepInclude(Object(error), { status: 404, type: "invalid_request_error" })
  })

  it("BadRequestError that names the parameter", async () => {
    const error = await thrownBy(() => say(client, "sandbox/echo", { temperature: 5 }))
    assertThrown(error, OpenAI.BadRequestError, [400, "invalid_request_error", "invalid_value"])
    assert.deepInclude(Object(error), { param: "temperature" })
  })

  it("BadRequestError when the model blames the request", async () => {
    const long = { messages: [{ role: "user", content: "x".repeat(2_000) }] }
    const error = await thrownBy(() => say(client, "sandbox/small", long))
    assertThrown(error, OpenAI.BadRequestError, [400, "invalid_request_error", "context_length_exceeded"])
  })

  it("an APIError of status 402, without a second try, when there are no credits; free models go on", async () => {
    const poor = await makeCaller(running.server, 0)
    const { fetch, times } = countingFetch()
    const api = clientOf(poor.key, { fetch })
    const error = await thrownBy(() => say(api, "sandbox/echo"))
    assertThrown(error, OpenAI.APIError, [402, "insufficient_quota", "insufficient_credits"])
    assert.strictEqual(times.length, 1)
    assert.include((await say(api, "sandbox/free")).choices[0]?.message.content, "Hello there")
  })

  it("an APIError of status 402 at the key's spend limit", async () => {
    const key = await running.caller.makeKey({ kind: "router", spend_limit_usd: 0.000000001 })
    const error = await thrownBy(() => say(clientOf(key), "sandbox/echo"))
    assertThrown(error, OpenAI.APIError, [402, "insufficient_quota", "key_spend_limit"])
  })

  it("RateLimitError of the upstream's limit, having waited as long as Retry-After says", async () => {
    const { fetch, times } = countingFetch()
    const api = clientOf(running.caller.key, { fetch, maxRetries: 1 })
    const error = await thrownBy(() => say(api, "sandbox/limited"))
    assertThrown(error, OpenAI.RateLimitError, [429, "rate_limit_error", "rate_limit_exceeded"])
    assert.strictEqual(times.length, 2)
    assert.isAtLeast((times[1] ?? 0) - (times[0] ?? 0), 990)
  })

  it("RateLimitError of the key's own limit", async () => {
    const key = await running.caller.makeKey({ kind: "router", rate_limit_per_minute: 1 })
    const api = clientOf(key, { maxRetries: 0 })
    const asking = async () => {
      for (let calls = 0; calls < 300; calls++) await say(api, "sandbox/free")
    }
    const error = await thrownBy(asking)
    assertThrown(error, OpenAI.RateLimitError, [429, "rate_limit_error", "rate_limit_exceeded"])
    const { headers } = error as InstanceType<typeof OpenAI.RateLimitError>
    assert.isAtLeast(Number(headers?.get("retry-after")), 1)
  })

  it("InternalServerError when the model fails, after the client's own two further tries", async () => {
    const before = (await running.sandbox.served("sandbox/fails")).failed
    const error = await thrownBy(() => say(client, "sandbox/fails"))
    assertThrown(error, OpenAI.InternalServerError, [502, "server_error", "upstream_error"])
    assert.strictEqual((await running.sandbox.served("sandbox/fails")).failed - before, 3)
  })

  it("InternalServerError when the upstream's own account is empty", async () => {
    const error = await thrownBy(() => say(clientOf(running.caller.key, { maxRetries: 0 }), "sandbox/unpaid"))
    assertThrown(error, OpenAI.InternalServerError, [502, "server_error", "upstream_error"])
  })

  it("an APIError of status 413 for a body over the limit, each time", async () => {
    const api = clientOf(running.caller.key, { maxRetries: 0 })
    const content = "x".repeat(24 * 1024 * 1024)
    for (let times = 0; times < 5; times++) {
      const error = await thrownBy(() =>
        api.chat.completions.create({ model: "sandbox/free", messages: [{ role: "user", content }] })
      )
      assertThrown(error, OpenAI.APIError, [413, "invalid_request_error", "payload_too_large"])
    }
  })

  it("an APIError within a stream that breaks off", async () => {
    const stream = await client.chat.completions.create({
      model: "sandbox/breaks",
      messages: [...hello],
      stream: true
    })
    const error = await thrownBy(async () => {
      for await (const chunk of stream) assert.isArray(chunk.choices)
    })
    assert.instanceOf(error, OpenAI.APIError)
  })
})
