import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import type { HotRoute } from "#src/front/HotRoute.ts"
import { engines, withFront } from "./TestFront.ts"

const event: HotRoute = {
  method: "POST",
  path: "/event",
  maxBodyBytes: 64,
  headers: [],
  cors: "open",
  handle: (request, _, reply) => reply.send(200, [], request.remoteAddress)
}

const health = HttpRouter.add("GET", "/health", Effect.succeed(HttpServerResponse.text("ok")))

describe.each(engines)("a request that a trusted proxy hands on without X-Forwarded-For (%s)", (engine) => {
  const warnings = async (trustProxy: number | ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
    const lines: Array<string> = []
    const log = (line: string): void => void lines.push(line)
    await withFront({ engine, trustProxy, hot: [event], app: health, log }, async ({ url }) => {
      const post = async (headers: Record<string, string>): Promise<string> =>
        (await fetch(`${url}/event`, { method: "POST", headers })).text()
      assert.strictEqual(await (await fetch(`${url}/health`)).text(), "ok")
      await post({ "x-forwarded-for": "203.0.113.7" })
      assert.notInclude(lines.join(), "X-Forwarded-For")
      for (let sent = 0; sent < 3; sent++) assert.strictEqual(await post({}), "127.0.0.1")
    })
    return lines.filter((line) => line.includes("X-Forwarded-For"))
  }

  it("is said once, where a number of hops is trusted", async () => {
    const said = await warnings(1)
    assert.lengthOf(said, 1)
    assert.include(said[0], "TRUST_PROXY is set, and 127.0.0.1 handed on a request without X-Forwarded-For")
  })

  it("is said where the peer is trusted, and of no other", async () => {
    assert.lengthOf(await warnings(["127.0.0.0/8"]), 1)
    assert.lengthOf(await warnings(["10.0.0.0/8"]), 0)
    assert.lengthOf(await warnings(0), 0)
  })
})
