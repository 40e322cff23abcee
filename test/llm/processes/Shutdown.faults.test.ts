import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { picoOfNumber } from "#schemas/llm/Money.ts"
import { until } from "#test/harness/Eventually.ts"
import { makeCaller } from "../Caller.ts"
import { type RouterProcesses, startRouters } from "./RouterProcesses.ts"

describe("SIGTERM amid calls", () => {
  let routers: RouterProcesses

  beforeAll(async () => {
    routers = await startRouters(1)
  })
  afterAll(() => routers?.close())

  it("lets a stream come to its end, and books it before the process is gone", async () => {
    const [server] = routers.servers
    assert.isDefined(server)
    const caller = await makeCaller(server, 1)
    const streaming = caller.say("sandbox/slow", "Take your time", { stream: true })
    await until("the stream has begun", async () => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text()
      return /^signalbox_model_requests_in_flight 1$/m.test(metrics) ? undefined : "no call is under way"
    })
    const ended = server.stop("SIGTERM")
    const answer = await streaming
    assert.isTrue(answer.isDone)
    assert.strictEqual(answer.finishReason, "stop")
    assert.strictEqual(await ended, 0)
    const charges = await routers.charges()
    assert.strictEqual(
      charges.get(answer.headers.get("x-request-id") ?? ""),
      picoOfNumber(answer.router?.charged_usd ?? 0)
    )
    assert.isAbove(answer.router?.charged_usd ?? 0, 0)
  })

  it("books what goes on without its client, for the sake of its Idempotency-Key", async () => {
    const [server] = routers.servers
    assert.isDefined(server)
    await server.start()
    const caller = await makeCaller(server, 1)
    const before = (await routers.charges()).size
    const leaving = new AbortController()
    const options = { headers: { "Idempotency-Key": "amid the end" }, signal: leaving.signal }
    const left = caller.say("sandbox/slow", "Take your time ".repeat(40), { stream: true }, options)
    await until("the stream has begun", async () => {
      const metrics = await (await fetch(`${server.url}/metrics`)).text()
      return /^signalbox_model_requests_in_flight 1$/m.test(metrics) ? undefined : "no call is under way"
    })
    leaving.abort()
    await Promise.allSettled([left])
    assert.strictEqual(await server.stop("SIGTERM"), 0)
    assert.strictEqual((await routers.charges()).size, before + 1)
  })
})
