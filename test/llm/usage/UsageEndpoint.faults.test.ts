import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import type { UsageOfWindow, UsageOverview } from "#schemas/llm/Usage.ts"
import { type Answer, ask } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { openStores, type ServerStores } from "#test/harness/ServerStores.ts"
import { until } from "#test/harness/Eventually.ts"
import { type Caller, makeCaller } from "../Caller.ts"

const windows = ["hour", "day", "week", "month", "year", "ever"] as const

const pico = (usd: number): bigint => picoOfNumber(usd) ?? -1n

describe("GET /usage", () => {
  let stores: ServerStores
  let server: ServerProcess

  beforeAll(async () => {
    stores = await openStores()
    server = await startServer({ env: stores.env })
  })
  afterAll(async () => {
    await server?.dispose()
    await stores?.close()
  })

  const usage = (key: string, query = ""): Promise<Answer> =>
    ask(server, "GET", `/api/v1/usage${query}`, { key })
  const overview = async (caller: Caller): Promise<UsageOverview> => {
    const { body, status } = await usage(caller.key)
    assert.strictEqual(status, 200)
    return body as UsageOverview
  }
  const ofWindow = async (caller: Caller, name: string): Promise<UsageOfWindow> => {
    const { body, status } = await usage(caller.key, `?window=${name}`)
    assert.strictEqual(status, 200)
    return body as UsageOfWindow
  }

  it("has every window and the credits, and in them at once whatever was answered before", async () => {
    const caller = await makeCaller(server, 3)
    let [spent, tokens] = [0n, 0]
    for (const stream of [false, true, false]) {
      const { router, status, usage } = await caller.say("sandbox/echo", "Count me", {
        stream,
        stream_options: { include_usage: true }
      })
      assert.strictEqual(status, 200)
      spent += pico(router?.charged_usd ?? 0)
      tokens += usage?.total_tokens ?? 0
      const found = await overview(caller)
      assert.deepStrictEqual(Object.keys(found.usage), [...windows])
      for (const name of windows) {
        const window = found.usage[name]
        assert.strictEqual(window.window, name)
        assert.strictEqual(pico(window.costUsd), spent)
        assert.strictEqual(window.totalTokens, tokens)
        assert.strictEqual(window.totalTokens, window.promptTokens + window.completionTokens)
        assert.match(window.since, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      }
      assert.isNull(found.usage.ever.resetsAt)
      assert.strictEqual(pico(found.credits.lifetimeSpentUsd), spent)
      assert.strictEqual(found.credits.lifetimeToppedUpUsd, 3)
      assert.strictEqual(pico(found.credits.balanceUsd), pico(3) - spent)
    }
    const { ever } = (await overview(caller)).usage
    assert.deepStrictEqual([ever.requests, ever.successes, ever.errors], [3, 3, 0])
  })

  it("has for one window a series that adds up to it, and the models by what they cost", async () => {
    const caller = await makeCaller(server, 3)
    await caller.say("sandbox/echo", "cheap")
    await caller.say("sandbox/tools", "dearer by its price a request")
    assert.isAtLeast((await caller.say("sandbox/fails", "fails")).status, 400)
    for (const name of windows) {
      const { series, topModels, usage, window } = await ofWindow(caller, name)
      assert.strictEqual(window, name)
      assert.deepStrictEqual(Object.keys(usage), [name])
      const total = usage[name]
      assert.deepInclude(total, { requests: 3, successes: 2, errors: 1 })
      const sum = (value: (bucket: (typeof series)[number]) => number) =>
        series.reduce((all, bucket) => all + value(bucket), 0)
      assert.deepStrictEqual(
        [sum(({ requests }) => requests), sum(({ errors }) => errors), sum(({ totalTokens }) => totalTokens)],
        [3, 1, total?.totalTokens]
      )
      assert.strictEqual(
        series.reduce((all, { costUsd }) => all + pico(costUsd), 0n),
        pico(total?.costUsd ?? 0)
      )
      assert.deepStrictEqual(
        topModels.slice(0, 2).map(({ model, requests }) => [model, requests]),
        [
          ["sandbox/tools", 1],
          ["sandbox/echo", 1]
        ]
      )
    }
  })

  it("is the owner's, whichever of their keys asks, and nobody else's", async () => {
    const caller = await makeCaller(server, 3)
    const stranger = await makeCaller(server, 0)
    await caller.say("sandbox/echo", "mine")
    const router = await caller.makeKey({ kind: "router", models: ["sandbox/echo"] })
    const { body, status } = await usage(router, "?window=day")
    assert.strictEqual(status, 200)
    assert.strictEqual((body as UsageOfWindow).usage["day"]?.requests, 1)
    assert.strictEqual((await overview(stranger)).usage.ever.requests, 0)
  })

  it("filters by source", async () => {
    const caller = await makeCaller(server, 3)
    await caller.say("sandbox/echo", "by the API")
    for (const [source, requests] of [
      ["api", 1],
      ["agent", 0]
    ] as const) {
      const { body } = await usage(caller.key, `?source=${source}`)
      assert.strictEqual((body as UsageOverview).usage.ever.requests, requests)
      const one = (await usage(caller.key, `?window=hour&source=${source}`)).body as UsageOfWindow
      assert.strictEqual(one.usage["hour"]?.requests, requests)
    }
  })

  it.each(["window", "source"])(
    "answers an invalid %s with 400 in the OpenAI form, naming it",
    async (name) => {
      for (const value of ["decade", "", "Hour", "hour,day"]) {
        const { body, status } = await usage(server.adminKey(), `?${name}=${value}`)
        assert.strictEqual(status, 400, value)
        const { error } = body as { error: Record<string, unknown> }
        assert.deepInclude(error, { type: "invalid_request_error", param: name })
      }
      assert.strictEqual((await usage(server.adminKey(), "?unknown=1")).status, 200)
      assert.strictEqual((await usage("sk_unknown")).status, 401)
    }
  )

  it("answers 503 with Retry-After while ClickHouse is away; calls go on, and are all there afterwards", async () => {
    const caller = await makeCaller(server, 3)
    await caller.say("sandbox/echo", "before")
    stores.clickhouse.breakWire("refuse")
    try {
      for (let call = 0; call < 5; call++) {
        assert.strictEqual((await caller.say("sandbox/echo", "meanwhile")).status, 200)
      }
      for (const query of ["", "?window=day"]) {
        const { body, headers, status } = await usage(caller.key, query)
        assert.strictEqual(status, 503)
        assert.isAbove(Number(headers.get("retry-after")), 0)
        assert.deepInclude((body as { error: object }).error, { type: "server_error", code: "overloaded" })
      }
    } finally {
      stores.clickhouse.mend()
    }
    await until("the calls", async () => {
      const { body, status } = await usage(caller.key)
      const found = status === 200 ? (body as UsageOverview).usage.ever.requests : status
      return found === 6 ? undefined : `${found}`
    })
  })

  it("counts every call that was answered, once, over kill -9", async () => {
    const caller = await makeCaller(server, 3)
    let answered = 0
    for (const streams of [true, false, true]) {
      const calls = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          caller.say("sandbox/echo", `call ${index}`, { stream: streams })
        )
      )
      answered += calls.filter(({ isDone, status }) => status === 200 && isDone).length
      await server.stop("SIGKILL")
      await server.start()
    }
    assert.strictEqual(answered, 24)
    await until("the calls", async () => {
      const { body, status } = await usage(caller.key)
      const found = status === 200 ? (body as UsageOverview).usage.ever.requests : -status
      assert.isAtMost(found, answered, "a call was counted twice")
      return found === answered ? undefined : `${found} of ${answered}`
    })
    const { credits, usage: counted } = await overview(caller)
    assert.strictEqual(pico(counted.ever.costUsd), pico(credits.lifetimeSpentUsd))
  })
})
