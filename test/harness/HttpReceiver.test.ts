import { afterEach, assert, beforeEach, describe, it } from "vitest"
import { HttpReceiver, passesOn } from "./HttpReceiver.ts"

describe("a receiver of HTTP requests", () => {
  let receiver: HttpReceiver
  beforeEach(async () => {
    receiver = await HttpReceiver.start()
  })
  afterEach(() => receiver.close())

  const failure = (asked: Promise<unknown>): Promise<unknown> =>
    asked.then(
      () => assert.fail("a failure is expected"),
      (error: unknown) => error
    )

  it("keeps what it is sent, and says 204 where nothing else was ordered", async () => {
    const headers = { "x-a": "1" }
    const answer = await fetch(`${receiver.origin}/path?a=b`, { method: "PUT", body: "ü", headers })
    assert.strictEqual(answer.status, 204)
    const [{ body, headers: sent, method, path } = assert.fail("nothing came"), ...more] = receiver.received
    assert.deepStrictEqual([method, path, body.toString(), sent["x-a"]], ["PUT", "/path?a=b", "ü", "1"])
    assert.isEmpty(more)
  })

  it("gives the answers that were ordered, one each, and then the usual one", async () => {
    receiver.next(
      { status: 503, headers: { "retry-after": "2" } },
      { status: 200, body: "late", afterMillis: 50 }
    )
    const from = performance.now()
    const [first, second, third] = [
      await fetch(receiver.origin),
      await fetch(receiver.origin),
      await fetch(receiver.origin)
    ]
    assert.deepStrictEqual([first.status, first.headers.get("retry-after")], [503, "2"])
    assert.deepStrictEqual([second.status, await second.text()], [200, "late"])
    assert.isAtLeast(performance.now() - from, 49)
    assert.strictEqual(third.status, 204)
    receiver.next({ status: 500 })
    receiver.forget()
    assert.strictEqual((await fetch(receiver.origin)).status, 204)
  })

  it("redirects", async () => {
    receiver.next({ redirectTo: "/there", status: 307 })
    const answer = await fetch(receiver.origin, { method: "POST", body: "again" })
    assert.deepStrictEqual([answer.status, answer.redirected], [204, true])
    assert.deepStrictEqual(
      receiver.received.map(({ body, method, path }) => [method, path, body.toString()]),
      [
        ["POST", "/", "again"],
        ["POST", "/there", "again"]
      ]
    )
  })

  it("hangs until the client leaves", async () => {
    receiver.next("hang")
    const error = await failure(fetch(receiver.origin, { signal: AbortSignal.timeout(50) }))
    assert.strictEqual((error as Error).name, "TimeoutError")
    assert.lengthOf(receiver.received, 1)
  })

  it("cuts connections, before an answer and within one", async () => {
    receiver.next("cut", { status: 200, body: "0123456789", cutAfterBytes: 4 })
    await failure(fetch(receiver.origin))
    const answer = await fetch(receiver.origin)
    assert.strictEqual(answer.headers.get("content-length"), "10")
    await failure(answer.text())
  })

  it("goes away and comes back on its port", async () => {
    await receiver.close()
    await failure(fetch(receiver.origin))
    await receiver.open()
    assert.strictEqual((await fetch(receiver.origin)).status, 204)
  })

  it("stands before another server, whose answers it can lose", async () => {
    const server = await HttpReceiver.start({
      status: 201,
      body: "made",
      headers: { "content-type": "text/a" }
    })
    try {
      receiver.otherwise = passesOn(server.origin)
      receiver.next(passesOn(server.origin, true))
      const headers = { authorization: "Bearer a" }
      await failure(fetch(`${receiver.origin}/x`, { method: "POST", body: "one", headers }))
      const answer = await fetch(`${receiver.origin}/x`, { method: "POST", body: "two", headers })
      assert.deepStrictEqual([answer.status, await answer.text()], [201, "made"])
      assert.strictEqual(answer.headers.get("content-type"), "text/a")
      assert.deepStrictEqual(
        server.received.map(({ body, headers: sent, path }) => [path, body.toString(), sent.authorization]),
        [
          ["/x", "one", "Bearer a"],
          ["/x", "two", "Bearer a"]
        ]
      )
    } finally {
      await server.close()
    }
  })
})
