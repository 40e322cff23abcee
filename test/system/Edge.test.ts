import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { request as rawRequest } from "node:http"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

const limits = { jsonBodyBytes: 4096 }
const origin = "https://console.example"

const create = { email: "ada@example.org", name: "Ada" }
const users = "/api/v1/users"
const json = { "content-type": "application/json" }

/** For a target that `fetch` would mend. */
const rawStatus = (port: number, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    rawRequest({ port, path, host: "127.0.0.1", agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
      .on("error", reject)
      .end()
  })

/** The text of a flat error, and nothing else beside it. */
const flatError = (answer: { readonly json: unknown }): string => {
  const body = answer.json as Record<string, unknown>
  assert.deepStrictEqual(Object.keys(body), ["error"])
  return String(body["error"])
}

layer(TestServer.own({ limits, corsOrigins: new Set([origin]) }), {
  excludeTestServices: true
})("every ordinary endpoint", (it) => {
  it.effect("answers unknown paths with 404, flat, whether or not there is a key", () =>
    Effect.gen(function* () {
      const { adminKey, ask } = yield* TestServer
      for (const path of [
        "/api/v1/nothing",
        "/api/v2/health",
        "/api/v1/health/",
        "//api/v1/health",
        "/API/v1/health",
        "/api/v1/files/a/b"
      ]) {
        for (const key of [adminKey, ""]) {
          const answer = yield* ask("GET", path, { key })
          assert.deepStrictEqual([answer.status, answer.json], [404, { error: "Not found" }], path)
        }
      }
    })
  )

  it.effect("takes a path for what it says: nothing ends or spells it otherwise", () =>
    Effect.gen(function* () {
      const { adminKey, ask, url } = yield* TestServer
      for (const path of [
        "/metrics;x",
        "/metrics;",
        "/metric%73",
        "/api/v1/%68ealth",
        "/api/v1/health;v=1?x=1",
        "/api/v1/admin/%75sers/usr_1",
        "/api/v1/%zz"
      ]) {
        const answer = yield* ask("GET", path, { key: adminKey })
        assert.deepStrictEqual([answer.status, answer.json], [404, { error: "Not found" }], path)
      }
      const port = Number(new URL(url).port)
      const marked = yield* Effect.promise(() => rawStatus(port, "/metrics#x"))
      assert.strictEqual(marked, 404)
      // An encoded id is the same id, and one with more behind it another.
      for (const path of ["/api/v1/files/fil%5F1", "/api/v1/files/fil_1;x"]) {
        const spelt = yield* ask("GET", path, { key: adminKey })
        assert.deepStrictEqual([spelt.status, spelt.json], [404, { error: "File not found" }], path)
      }
    })
  )

  it.effect("answers a wrong method with 405 and what is allowed", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const [method, path, allow] of [
        ["POST", "/api/v1/health", "GET, HEAD"],
        ["GET", "/api/v1/files", "POST, OPTIONS"],
        ["PUT", "/api/v1/files/fil_1", "GET, DELETE, HEAD, OPTIONS"],
        ["GET", "/api/v1/admin/users", "POST"],
        ["DELETE", "/readyz", "GET, HEAD"],
        ["POST", "/openapi.json", "GET, HEAD"]
      ] as const) {
        const answer = yield* ask(method, path)
        assert.deepStrictEqual(
          [answer.status, answer.headers.get("allow"), answer.json],
          [405, allow, { error: "Method not allowed" }],
          `${method} ${path}`
        )
      }
      const type = "invalid_request_error"
      for (const [method, path, allow] of [
        ["OPTIONS", "/api/v1/keys", "GET, HEAD, POST"],
        ["POST", "/api/v1/models", "GET, HEAD"],
        ["DELETE", "/api/v1/usage", "GET, HEAD"],
        ["PUT", "/api/v1/credits", "GET, HEAD"]
      ] as const) {
        const answer = yield* ask(method, path)
        assert.deepStrictEqual(
          [answer.status, answer.headers.get("allow"), answer.json],
          [405, allow, { error: { message: "Method not allowed", type, code: null, param: null } }],
          `${method} ${path}`
        )
      }
    })
  )

  it.effect("answers HEAD as GET, without the body", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const path of ["/api/v1/users", "/healthz", "/openapi.json"]) {
        const [head, get] = [yield* ask("HEAD", path), yield* ask("GET", path)]
        assert.deepStrictEqual([head.status, head.bytes.length], [200, 0], path)
        assert.strictEqual(head.headers.get("content-type"), get.headers.get("content-type"), path)
      }
      assert.strictEqual((yield* ask("HEAD", "/api/v1/nothing")).status, 404)
    })
  )

  it.effect("gives every answer an X-Request-Id: the caller's if it is a plain token, else a new one", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const idOf = (path: string, sent?: string) =>
        Effect.map(
          ask("GET", path, { headers: sent === undefined ? {} : { "x-request-id": sent } }),
          ({ headers }) => headers.get("x-request-id")
        )
      for (const path of ["/api/v1/health", "/api/v1/nothing", "/healthz", "/api/v1/keys/x"]) {
        assert.strictEqual(yield* idOf(path, "order-7:a.b_c"), "order-7:a.b_c", path)
        for (const bad of [undefined, "", "a b", "é", "x".repeat(129), '"><script>']) {
          assert.match((yield* idOf(path, bad)) ?? "", /^req_[0-9A-Za-z]{22}$/, path)
        }
      }
      assert.strictEqual(yield* idOf("/healthz", "x".repeat(128)), "x".repeat(128))
    })
  )

  it.effect("lets the origins of CORS_ORIGINS in, and no other", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const asked = (from: string) => ask("GET", "/api/v1/health", { headers: { origin: from } })
      const mine = yield* asked(origin)
      assert.strictEqual(mine.headers.get("access-control-allow-origin"), origin)
      assert.strictEqual(mine.headers.get("vary"), "Origin")
      assert.match(mine.headers.get("access-control-expose-headers") ?? "", /RateLimit-Remaining/)
      for (const other of ["https://evil.example", `${origin}.evil.example`, "null", `${origin}:444`]) {
        const theirs = yield* asked(other)
        assert.isNull(theirs.headers.get("access-control-allow-origin"), other)
        assert.strictEqual(theirs.headers.get("vary"), "Origin")
      }
      const preflight = (from: string) =>
        ask("OPTIONS", "/api/v1/keys", {
          key: "",
          headers: { origin: from, "access-control-request-method": "POST" }
        })
      const allowed = yield* preflight(origin)
      assert.strictEqual(allowed.status, 204)
      assert.include(allowed.headers.get("access-control-allow-headers") ?? "", "Authorization")
      assert.strictEqual((yield* preflight("https://evil.example")).status, 405)
    })
  )

  it.effect(
    "refuses a body that is no JSON, no UTF-8, too deep, too long or of another type, and says why",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const nested = (depth: number): string => `{"name":${"[".repeat(depth)}${"]".repeat(depth)}}`
        const padded = (length: number): string => JSON.stringify(create).padEnd(length)
        for (const [body, status, error] of [
          ["", 400, /^body: expected object$/],
          ["{", 400, /^body: expected a valid JSON body$/],
          ['{"email":"a@b.c","name":"A"} x', 400, /^body: expected a valid JSON body$/],
          ["{'email':1}", 400, /^body: expected a valid JSON body$/],
          ["[]", 400, /^body: expected object$/],
          ["null", 400, /^body: expected object$/],
          ['"text"', 400, /^body: expected object$/],
          [new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), 400, /^body: expected UTF-8$/],
          [nested(64), 400, /^body: nested deeper than 64$/],
          [nested(63), 400, /^email: is required$/],
          [padded(4096), 200, undefined],
          [padded(4097), 413, /^body: at most 4096 bytes$/]
        ] as const) {
          const answer = yield* ask("POST", users, { body, headers: json })
          assert.strictEqual(answer.status, status, String(body).slice(0, 40))
          if (error !== undefined) assert.match(flatError(answer), error)
        }
        const form = yield* ask("POST", users, { body: new URLSearchParams({ email: "a@b.c" }) })
        assert.deepStrictEqual([form.status, flatError(form)], [415, "Content-Type must be application/json"])
      })
  )

  it.effect("holds a body without Content-Length to its limit too", () =>
    Effect.gen(function* () {
      const { adminKey, port } = yield* TestServer
      const status = yield* Effect.promise(
        () =>
          new Promise((resolve, reject) => {
            const headers = { ...json, authorization: `Bearer ${adminKey}` }
            const request = rawRequest(
              { port, host: "127.0.0.1", method: "POST", path: users, headers },
              (response) => {
                response.resume()
                resolve(response.statusCode)
              }
            )
            request.on("error", reject)
            request.write(`{"pad":"${"x".repeat(4096)}`)
            request.end(`","email":"a@b.c"}`)
          })
      )
      assert.strictEqual(status, 413)
    })
  )

  it.effect(
    "lets the last of duplicate keys hold, and takes __proto__ for a member like any other that is unknown",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        const twice = `{"email":"first@example.org","name":"A","email":"last@example.org"}`
        const answer = yield* ask("POST", users, { body: twice, headers: json })
        assert.deepInclude(answer.json, {
          requestedData: { email: "last@example.org", name: "A", role: "user" }
        })
        for (const member of ["__proto__", "constructor"]) {
          const body = `{"email":"a@example.org","name":"A","${member}":{"role":"admin","polluted":true}}`
          const refused = yield* ask("POST", users, { body, headers: json })
          assert.deepStrictEqual(
            [refused.status, refused.json],
            [400, { error: `${member}: is not known here` }]
          )
        }
        assert.isUndefined(Reflect.get({}, "polluted"))
      })
  )

  it.effect(
    "answers a known query parameter that is invalid with 400 by its name, and ignores unknown ones",
    () =>
      Effect.gen(function* () {
        const { ask } = yield* TestServer
        for (const [query, status, error] of [
          ["limit=1", 200, ""],
          ["limit=100&offset=0", 200, ""],
          ["limit=0", 400, "limit: expected an integer between 1 and 100"],
          ["limit=101", 400, "limit: expected an integer between 1 and 100"],
          ["limit=1.5", 400, "limit: expected an integer"],
          ["limit=ten", 400, "limit: expected a number"],
          ["limit=", 400, "limit: expected a number"],
          ["limit=1&limit=2", 400, "limit: is there several times"],
          ["offset=-1", 400, "offset: expected an integer between 0 and 2147483647"],
          ["offset=2147483648", 400, "offset: expected an integer between 0 and 2147483647"],
          ["page=first&Limit=0&__proto__=1", 200, ""]
        ] as const) {
          const answer = yield* ask("GET", `${users}?${query}`)
          assert.strictEqual(answer.status, status, query)
          if (status === 400) assert.strictEqual(flatError(answer), error, query)
        }
      })
  )

  it.effect("answers an odd id as one that is not there, or names it where no id is like that", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const [id, expected] of [
        ["%00", 400],
        ["a%00b", 400],
        ["%0a", 400],
        ["x".repeat(65), 400],
        ["x".repeat(3_000), 400],
        ["x".repeat(64), 404],
        ["%ff", 404],
        ["%", 404],
        ["..%2f..%2fetc", 404],
        ["%F0%9F%98%80", 404],
        ["'", 404]
      ] as const) {
        for (const [method, path] of [
          ["GET", `/api/v1/files/${id}`],
          ["DELETE", `/api/v1/files/${id}`],
          ["GET", `/api/v1/admin/users/${id}`],
          ["DELETE", `/api/v1/admin/users/${id}`],
          ["DELETE", `/api/v1/keys/${id}`]
        ] as const) {
          const answer = yield* ask(method, path)
          assert.strictEqual(answer.status, expected, `${method} ${path}`)
          if (expected === 400) assert.match(JSON.stringify(answer.json), /id: expected an id of at most 64/)
        }
      }
    })
  )

  it.effect("says below /api/v1 where everything is", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const index = yield* ask("GET", "/api/v1", { key: "" })
      assert.strictEqual(index.status, 200)
      assert.deepInclude(index.json, { name: "signalbox", docs: "/docs", openapi: "/openapi.json" })
      for (const path of [textOf(index, "docs"), textOf(index, "openapi"), textOf(index, "health")]) {
        assert.strictEqual((yield* ask("GET", path, { key: "" })).status, 200, path)
      }
      assert.strictEqual((yield* ask("POST", "/api/v1")).status, 405)
    })
  )

  it.effect("shows a person the way on where nothing is, and tells programs in JSON", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
      for (const path of ["/nothing", "/api/v1/nothing", "/api/v1/files/fil_0", "/docs;x", "/docs/"]) {
        const shown = yield* ask("GET", path, { headers: { accept } })
        assert.strictEqual(shown.status, 404, path)
        assert.strictEqual(shown.headers.get("content-type"), "text/html; charset=utf-8", path)
        assert.match(
          shown.headers.get("content-security-policy") ?? "",
          /^default-src 'none'; style-src 'sha256-/
        )
        const page = Buffer.from(shown.bytes).toString()
        assert.include(page, '<a href="/">The console</a>')
        assert.include(page, '<a href="/docs">The API</a>')
        for (const headers of [{ accept: "*/*" }, { accept: "application/json" }, {}]) {
          const told = yield* ask("GET", path, { headers })
          assert.strictEqual(told.status, 404, path)
          assert.match(JSON.stringify(told.json), /^\{"error":"(Not|File not) found"\}$/)
        }
        assert.strictEqual(
          (yield* ask("POST", path, { headers: { accept } })).headers.get("content-type"),
          "application/json"
        )
      }
    })
  )

  it.effect("lets no browser take a body for what its type does not say", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const path of ["/openapi.json", "/metrics", "/readyz", "/docs", "/api/v1/users", "/nothing"]) {
        const answer = yield* ask("GET", path)
        assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff", path)
      }
    })
  )

  it.effect("publishes its contract and a page that loads nothing from elsewhere", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const contract = yield* ask("GET", "/openapi.json", { key: "" })
      assert.strictEqual(textOf(contract, "openapi"), "3.1.0")
      const docs = yield* ask("GET", "/docs", { key: "" })
      assert.match(docs.headers.get("content-type") ?? "", /^text\/html/)
      const page = Buffer.from(docs.bytes).toString()
      assert.notMatch(page, /<(script|link|img)[^>]+(src|href)="https?:/)
    })
  )

  it.effect("serves the agent's protocol, and what installs its client, without a key", () =>
    Effect.gen(function* () {
      const { ask, url } = yield* TestServer
      for (const [path, type] of [
        ["/docs/agent", /^text\/html/],
        ["/docs/agent.json", /^application\/json/],
        ["/agent/install.sh", /^text\/plain/]
      ] as const) {
        const answer = yield* ask("GET", path, { key: "" })
        assert.strictEqual(answer.status, 200, path)
        assert.match(answer.headers.get("content-type") ?? "", type)
        assert.strictEqual((yield* ask("POST", path)).status, 405, path)
      }
      const script = yield* ask("GET", "/agent/install.sh", { key: "" })
      assert.include(Buffer.from(script.bytes).toString(), `server='${url}'`)
      const absent = yield* ask("GET", "/api/v1/agent/downloads/another", { key: "" })
      assert.deepStrictEqual([absent.status, absent.json], [404, { error: "Not found" }])
    })
  )
})
