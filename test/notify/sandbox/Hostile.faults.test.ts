import { assert, describe } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { sandboxLimits as limits } from "#src/notify/sandbox/Limits.ts"
import { endOf, raw, test } from "./Stage.ts"

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]

describe("the sandbox", () => {
  test("answers garbage with 4xx, at every address, and goes on", async ({ sandbox, sender }) => {
    const [subscription, webhook] = [await sandbox.subscribe(), await sandbox.webhook()]
    const paths = [
      "/",
      "/inbox",
      "/faults",
      "/faults/flt_1",
      "/push/subscriptions",
      `/push/subscriptions/${subscription.id}`,
      `/push/${subscription.id}`,
      "/push/messages/1",
      "/push/messages/999999999999999",
      "/push/../inbox",
      "/webhooks",
      `/webhooks/${webhook.id}`,
      "/nothing",
      "//elsewhere.test/inbox",
      "/%00",
      "/%ff",
      `/${"x".repeat(4_000)}`,
      "/push/__proto__",
      "/webhooks/constructor"
    ]
    const bodies = [
      undefined,
      "",
      "{",
      "[]",
      "null",
      '"x"',
      '{"__proto__": 1}',
      randomBytes(5_000),
      "9".repeat(9_000)
    ]
    for (const path of paths)
      for (const method of methods.filter((one) => one !== "DELETE"))
        for (const body of method === "GET" || method === "HEAD" ? [undefined] : bodies) {
          const response = await fetch(`${sandbox.origin}${path}`, {
            method,
            body: body === undefined ? null : body,
            headers: { ttl: "x", topic: "\u00ff", authorization: "vapid t=..,k=" }
          })
          await response.arrayBuffer()
          assert.isBelow(response.status, 500, `${method} ${path} ${String(body).slice(0, 20)}`)
        }
    assert.strictEqual((await sender.push(subscription)).status, 201)
  })

  test("refuses a body that is too long, announced or not, without reading it", async ({ sandbox }) => {
    const { id } = await sandbox.webhook()
    const head = `POST /webhooks/${id} HTTP/1.1\r\nhost: ${new URL(sandbox.origin).host}\r\n`
    const announced = await raw(sandbox.origin, `${head}content-length: 99999999999\r\n\r\nx`)
    assert.match(announced, /^HTTP\/1\.1 413 [^]*connection: close/i)
    const size = limits.bodyBytes + 1
    const chunked = `${head}transfer-encoding: chunked\r\n\r\n${size.toString(16)}\r\n${"x".repeat(size)}`
    assert.match(await raw(sandbox.origin, chunked), /^HTTP\/1\.1 413 /)
    assert.deepInclude(await sandbox.inbox(), { received: 0 })
  })

  test("counts nothing of a body that breaks off", async ({ sandbox }) => {
    const { id } = await sandbox.webhook()
    const head = `POST /webhooks/${id} HTTP/1.1\r\nhost: ${new URL(sandbox.origin).host}\r\n`
    await raw(sandbox.origin, `${head}content-length: 1000\r\n\r\nhalf`, true)
    await raw(sandbox.origin, `${head}transfer-encoding: chunked\r\n\r\nff\r\nhalf`, true)
    assert.notMatch(await raw(sandbox.origin, `${head}content-length: -1\r\n\r\n`), /HTTP\/1\.1 5/)
    assert.notMatch(await raw(sandbox.origin, randomBytes(500)), /HTTP\/1\.1 5/)
    assert.deepInclude(await sandbox.inbox(), { received: 0 })
  })

  test("has so many subscriptions, faults and waiting requests at most (429)", async ({ sandbox }) => {
    for (let made = 0; made < limits.faults; made += 100)
      await Promise.all(Array.from({ length: 100 }, () => sandbox.order({ status: 503 })))
    assert.match(String(await endOf(sandbox.order({ status: 503 }))), /^429 .*at most 1000 faults/)
    const gone = new AbortController()
    const waiting = Array.from({ length: limits.waiters }, () =>
      endOf(fetch(`${sandbox.origin}/inbox?waitMillis=60000`, { signal: gone.signal }))
    )
    let further = ""
    while (!further.startsWith("429 "))
      further = String(await endOf(sandbox.ask("GET", "/inbox?waitMillis=50")))
    gone.abort()
    await Promise.all(waiting)
    assert.match(further, /at most 256 requests wait/)
    // Those that went away make room.
    while (further.includes("429 "))
      further = JSON.stringify(await endOf(sandbox.ask("GET", "/inbox?waitMillis=1")))
  })
})
