import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

const mib = 1024 * 1024

/** Headers that no two answers share. */
const changing = new Set(["x-request-id", "date", "ratelimit-remaining", "ratelimit-reset"])

const store = (bytes: Uint8Array<ArrayBuffer>, key?: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const body = new FormData()
    body.set("file", new Blob([bytes]), "a.bin")
    return textOf(yield* ask("POST", "/api/v1/files", { body, ...(key === undefined ? {} : { key }) }), "url")
  })

const opened = Effect.flatMap(TestServer, ({ port }) =>
  Effect.acquireRelease(
    Effect.promise(() => RawClient.open(port)),
    (client) => Effect.sync(() => client.destroy())
  )
)

const upload = (key: string, more: string): string =>
  `POST /api/v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: multipart/form-data; boundary=b\r\n${more}\r\n`

layer(TestServer.shared, { excludeTestServices: true })("routes of account files", (it) => {
  it.effect("refuse before any of the body has come", () =>
    Effect.gen(function* () {
      const { adminKey } = yield* TestServer
      const long = "Content-Length: 100000000000\r\n"
      for (const [key, status, error] of [
        ["sk_nothing", 401, "Invalid or missing API key"],
        [adminKey, 413, "file: at most 104857600 bytes"]
      ] as const) {
        const client = yield* opened
        yield* Effect.promise(() => client.send(upload(key, long)))
        const text = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
        assert.strictEqual(statusOf(text), status)
        assert.isTrue(text.endsWith(JSON.stringify({ error })))
        assert.match(text, /x-request-id: /i)
        assert.match(text, /connection: close\r\n/i)
      }
    })
  )

  it.effect("have the headers of ordinary endpoints, the caller's request id among them", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const path = yield* store(new Uint8Array(10))
      const read = yield* ask("GET", path, { headers: { "x-request-id": "mine-1" } })
      assert.strictEqual(read.headers.get("x-request-id"), "mine-1")
      assert.match(read.headers.get("ratelimit-remaining") ?? "", /^\d+$/)
      const refused = yield* ask("GET", path, { key: "" })
      assert.strictEqual(refused.headers.get("www-authenticate"), "Bearer")
    })
  )

  it.effect("answer from memory as they do from the disk, and count it", () =>
    Effect.gen(function* () {
      const { ask, makeKey, makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const path = yield* store(new TextEncoder().encode("0123456789"), key)
      const etag = (yield* ask("HEAD", path, { key })).headers.get("etag") ?? ""
      for (const headers of [
        {},
        { range: "bytes=2-4" },
        { range: "bytes=20-" },
        { "if-none-match": etag },
        { "x-request-id": "mine-2", origin: "https://elsewhere.example" }
      ]) {
        const shown = async () => {
          const answer = await fetch(`${url}${path}`, {
            headers: { ...headers, authorization: `Bearer ${key}` }
          })
          const told = [...answer.headers].filter(([name]) => !changing.has(name))
          return { status: answer.status, headers: told, text: await answer.text() }
        }
        const first = yield* Effect.promise(shown)
        assert.deepStrictEqual(yield* Effect.promise(shown), first)
      }
      const slow = yield* makeKey({ rate_limit_per_minute: 2 })
      const statuses = yield* Effect.forEach([1, 2, 3], () =>
        Effect.map(ask("GET", path, { key: slow.key }), ({ status }) => status)
      )
      assert.deepStrictEqual(statuses, [200, 200, 429])
      assert.strictEqual((yield* ask("GET", path, { key: `${key}x` })).status, 401)
    })
  )

  it.effect("answer other methods with 405 and what is allowed", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const [method, path, allow] of [
        ["PUT", "/api/v1/files/x", "GET, HEAD, DELETE, OPTIONS"],
        ["GET", "/api/v1/files", "POST, OPTIONS"]
      ] as const) {
        const refused = yield* ask(method, path)
        assert.deepStrictEqual([refused.status, refused.json], [405, { error: "Method not allowed" }])
        assert.sameMembers(refused.headers.get("allow")?.split(", ") ?? [], allow.split(", "))
      }
      assert.strictEqual((yield* ask("POST", "/api/v1/files/")).status, 404)
    })
  )

  it.effect("end a download with its key", () =>
    Effect.gen(function* () {
      const { ask, makeKey } = yield* TestServer
      const size = 40 * mib
      const path = yield* store(new Uint8Array(size))
      const { id, key } = yield* makeKey()
      const client = yield* opened
      client.socket.pause()
      yield* Effect.promise(() =>
        client.send(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`)
      )
      yield* Effect.sleep("300 millis")
      yield* ask("DELETE", `/api/v1/keys/${id}`)
      yield* Effect.sleep("1 second")
      client.socket.resume()
      const text = yield* Effect.promise(() => client.closed())
      assert.strictEqual(statusOf(text.slice(0, 1000)), 200)
      assert.isBelow(client.receivedBytes, size)
    })
  )
})
