import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type IncomingHttpHeaders, get } from "node:http"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { clientFrom } from "#src/analytics/ingest/ScriptRoutes.ts"
import { encodingFor } from "#src/http/Static.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const clients = ["/scripts/beacon.mjs", "/scripts/beacon.py", "/scripts/beacon.php"]
const scripts = ["/a.js", ...clients]

/** The body as sent on the wire: `fetch` would decode it. */
const wire = (
  url: string,
  acceptEncoding: string,
  more: Readonly<Record<string, string>> = {}
): Effect.Effect<{ readonly headers: IncomingHttpHeaders; readonly bytes: Buffer }> =>
  Effect.promise(
    () =>
      new Promise((resolve, reject) => {
        get(url, { headers: { "accept-encoding": acceptEncoding, ...more } }, (response) => {
          const chunks: Array<Buffer> = []
          response.on("data", (chunk: Buffer) => chunks.push(chunk))
          response.on("end", () => resolve({ headers: response.headers, bytes: Buffer.concat(chunks) }))
        }).on("error", reject)
      })
  )

const etagOf = (headers: Headers): string => headers.get("etag") ?? assert.fail("no ETag")

layer(TestServer.own({ corsOrigins: new Set(["https://console.example"]) }), {
  excludeTestServices: true
})("/a.js and /scripts/beacon.*", (it) => {
  it.effect("are at most 1,000 bytes for pages, gzipped or in Brotli, as served", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const plain = yield* wire(`${url}/a.js`, "identity")
      const gzip = yield* wire(`${url}/a.js`, "gzip, deflate")
      const brotli = yield* wire(`${url}/a.js`, "gzip, deflate, br, zstd")
      assert.strictEqual(gzip.headers["content-encoding"], "gzip")
      assert.strictEqual(brotli.headers["content-encoding"], "br")
      assert.isUndefined(plain.headers["content-encoding"])
      assert.isAtMost(gzip.bytes.length, 1000)
      assert.isBelow(brotli.bytes.length, gzip.bytes.length)
      assert.deepStrictEqual(gunzipSync(gzip.bytes), plain.bytes)
      assert.deepStrictEqual(brotliDecompressSync(brotli.bytes), plain.bytes)
      for (const { headers } of [plain, gzip, brotli]) assert.strictEqual(headers.vary, "Accept-Encoding")
    })
  )

  it.effect("are open to every origin and read as what they are, never run as anything else", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const path of scripts) {
        for (const origin of ["https://example.com", "https://console.example", "null"]) {
          const { headers, status } = yield* ask("GET", path, { key: "", headers: { origin } })
          assert.strictEqual(status, 200)
          assert.strictEqual(headers.get("access-control-allow-origin"), "*")
          assert.isNull(headers.get("access-control-allow-credentials"))
          assert.strictEqual(headers.get("cross-origin-resource-policy"), "cross-origin")
          assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
          assert.strictEqual(
            headers.get("content-type"),
            path.endsWith("js") ? "text/javascript; charset=utf-8" : "text/plain; charset=utf-8"
          )
        }
      }
    })
  )

  it.effect("carry their version, a hash of the content, and are not sent again to who has it", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const tags = new Set<string>()
      for (const path of scripts) {
        const etag = etagOf((yield* ask("GET", path)).headers)
        tags.add(etag)
        assert.match(etag, /^W\/"[\w-]{22}"$/)
        for (const known of [etag, `"other", ${etag}`, "*"]) {
          const again = yield* ask("GET", path, { headers: { "if-none-match": known } })
          assert.deepStrictEqual([again.status, again.bytes.length], [304, 0])
          assert.strictEqual(etagOf(again.headers), etag)
        }
        const stale = yield* ask("GET", path, { headers: { "if-none-match": 'W/"other"' } })
        assert.strictEqual(stale.status, 200)
        const gzip = yield* ask("GET", path, { headers: { "accept-encoding": "gzip" } })
        assert.strictEqual(etagOf(gzip.headers), etag)
      }
      assert.strictEqual(tags.size, scripts.length)
    })
  )

  it.effect("let pages keep the script for an hour, and a week more while they ask for a new one", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const cachingOf = (path: string) =>
        Effect.map(ask("GET", path), ({ headers }) => headers.get("cache-control"))
      assert.strictEqual(yield* cachingOf("/a.js"), "public, max-age=3600, stale-while-revalidate=604800")
      for (const path of clients) assert.strictEqual(yield* cachingOf(path), "no-cache")
    })
  )

  it.effect("answer HEAD as GET, and other methods with 405", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const path of scripts) {
        const head = yield* ask("HEAD", path)
        assert.deepStrictEqual([head.status, head.bytes.length], [200, 0])
        const post = yield* ask("POST", path)
        assert.deepStrictEqual([post.status, post.headers.get("allow")], [405, "GET, HEAD"])
      }
      assert.strictEqual((yield* ask("GET", "/scripts/beacon.rb")).status, 404)
    })
  )

  it.effect("know the address that the server listens on where BASE_URL is unset", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      for (const path of clients) {
        // `fetch` would send a Host of its own.
        const headers = { host: "evil.example", "x-forwarded-proto": "https" }
        const text = (yield* wire(`${url}${path}`, "identity", headers)).bytes.toString()
        assert.include(text, url)
        assert.notInclude(text, "evil.example")
      }
    })
  )
})

layer(TestServer.own({ baseUrl: "https://stats.example/it's/$here" }), {
  excludeTestServices: true
})("the clients of a server with a BASE_URL", (it) => {
  it.effect("know it", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const texts = [`"https://stats.example/it's/$here"`, `'https://stats.example/it\\'s/$here'`]
      for (const path of clients) {
        const text = Buffer.from((yield* ask("GET", path)).bytes).toString()
        assert.isTrue(
          texts.some((quoted) => text.includes(quoted)),
          path
        )
      }
    })
  )
})

layer(TestServer.own({ trustProxy: 1 }), { excludeTestServices: true })(
  "the clients of a server behind a proxy that it trusts",
  (it) => {
    it.effect("know where the proxy was asked, in what is a host and a scheme alone", () =>
      Effect.gen(function* () {
        const { adminKey, url } = yield* TestServer
        const cases = [
          [{ host: "stats.example" }, "http://stats.example"],
          [{ host: "stats.example:8443", "x-forwarded-proto": "https" }, "https://stats.example:8443"],
          [{ host: "[2001:db8::1]:81", "x-forwarded-proto": "http, HTTPS" }, "https://[2001:db8::1]:81"],
          [{ host: "stats.example", "x-forwarded-proto": "javascript" }, "http://stats.example"],
          [{ host: `a"b` }, url],
          [{ host: "a/b" }, url],
          [{ host: "a'$(id)" }, url]
        ] as const
        for (const [headers, address] of cases) {
          for (const path of clients) {
            const text = (yield* wire(`${url}${path}`, "identity", headers)).bytes.toString()
            const isNamed = text.includes(`"${address}"`) || text.includes(`'${address}'`)
            assert.isTrue(isNamed, `${path} ${headers.host}`)
          }
          const key = { ...headers, authorization: `Bearer ${adminKey}` }
          const info = yield* wire(`${url}/api/v1/agent`, "identity", key)
          const { gateway } = JSON.parse(info.bytes.toString())
          assert.strictEqual(gateway.url, `${address.replace("http", "ws")}/api/v1/agent/ws`)
        }
      })
    )
  }
)

layer(TestServer.own({ rooms: new Set(["accounts"]) }), {
  excludeTestServices: true
})("a server without the analytics room", (it) => {
  it.effect("has no scripts", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const path of scripts) assert.strictEqual((yield* ask("GET", path)).status, 404)
    })
  )
})

describe("a client's address", () => {
  it("ends no text of its language, whatever it is", () => {
    for (const url of ["https://a.example/\"';$x\\\n", "https://a.example/%22/{$x}?q=\\#'\""]) {
      const double = clientFrom('x = "http://127.0.0.1:8080"', url)
      assert.match(double, /^x = "[^"\\\n]*"$/)
      const single = clientFrom("$x = 'http://127.0.0.1:8080'", url)
      assert.match(single, /^\$x = '(?:[^'\\\n]|\\')*'$/)
    }
  })

  it("is replaced once or not at all", () => {
    assert.throws(() => clientFrom("x = 1", "https://a.example"), /no address/)
    const twice = '"http://127.0.0.1:8080" "http://127.0.0.1:8080"'
    assert.throws(() => clientFrom(twice, "https://a.example"), /no address/)
  })
})

describe("Accept-Encoding", () => {
  it("is answered with the smallest encoding that is taken (RFC 9110, 12.5.3)", () => {
    for (const [accepted, encoding] of [
      [undefined, "identity"],
      ["", "identity"],
      ["gzip", "gzip"],
      ["gzip, deflate, br", "br"],
      ["br;q=0, gzip;q=0.5", "gzip"],
      ["br;q=0.000, gzip;q=0", "identity"],
      ["BR ; q=1", "br"],
      ["*", "br"],
      ["*;q=0", "identity"],
      ["*, br;q=0", "gzip"],
      ["deflate, zstd", "identity"],
      ["brotli, gzipped", "identity"]
    ] as const) {
      assert.strictEqual(encodingFor(accepted), encoding, accepted)
    }
  })
})
