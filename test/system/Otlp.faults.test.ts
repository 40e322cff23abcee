import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { createServer } from "node:http"
import { ask } from "#test/harness/ApiClient.ts"
import { startServer } from "#test/harness/ServerProcess.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** An OTLP collector that keeps what it is sent, by path. */
const collector = Effect.acquireRelease(
  Effect.promise(
    () =>
      new Promise<{ readonly url: string; readonly sent: Map<string, string>; close(): void }>((resolve) => {
        const sent = new Map<string, string>()
        const server = createServer((request, response) => {
          let body = ""
          request.on("data", (chunk: Buffer) => (body += chunk.toString()))
          request.on("end", () => {
            sent.set(request.url ?? "", `${sent.get(request.url ?? "") ?? ""}${body}\n`)
            response.end("{}")
          })
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = Predicate.hasProperty(address, "port") ? String(address.port) : ""
          resolve({ url: `http://127.0.0.1:${port}`, sent, close: () => server.close() })
        })
      })
  ),
  ({ close }) => Effect.sync(close)
)

const serverWith = (env: Readonly<Record<string, string>>) =>
  Effect.flatMap(TestStores, ({ databaseUrl }) =>
    Effect.acquireRelease(
      Effect.promise(() => startServer({ env: { ROOMS: "accounts", DATABASE_URL: databaseUrl, ...env } })),
      (server) => Effect.promise(() => server.dispose())
    )
  )

interface Span {
  readonly name: string
  readonly traceId: string
  readonly parentSpanId?: string
  /** 2: server, 3: client */
  readonly kind: number
  readonly attributes: ReadonlyArray<{
    readonly key: string
    readonly value: Readonly<Record<string, unknown>>
  }>
}

const spansIn = (bodies: string): ReadonlyArray<Span> =>
  bodies
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      const { resourceSpans } = JSON.parse(line) as {
        resourceSpans: ReadonlyArray<{ scopeSpans: ReadonlyArray<{ spans: ReadonlyArray<Span> }> }>
      }
      return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    })

const attributeOf = ({ attributes }: Span, name: string): unknown =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0]

const jsonLines = (output: string): ReadonlyArray<string> =>
  output.split("\n").filter((line) => line.startsWith("{"))

layer(TestStores.layer, { excludeTestServices: true })("OTEL_EXPORTER_OTLP_ENDPOINT", (it) => {
  it.effect(
    "gets spans, log lines and metrics by the time the server has stopped; the log stays as it is",
    () =>
      Effect.gen(function* () {
        const { sent, url } = yield* collector
        const server = yield* serverWith({ OTEL_EXPORTER_OTLP_ENDPOINT: url, LOG_LEVEL: "debug" })
        const answer = yield* Effect.promise(() => ask(server, "GET", "/api/v1/stats"))
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(yield* Effect.promise(() => server.stop()), 0)
        assert.deepStrictEqual([...sent.keys()].toSorted(), ["/v1/logs", "/v1/metrics", "/v1/traces"])
        for (const body of sent.values()) assert.include(body, '"signalbox"')
        assert.include(sent.get("/v1/traces"), "/api/v1/stats")
        assert.include(sent.get("/v1/metrics"), "signalbox_http_requests_total")
        const lines = jsonLines(server.output())
        assert.isNotEmpty(lines)
        for (const line of lines) assert.hasAnyKeys(JSON.parse(line), ["time"])
        assert.notInclude([...sent.values()].join(""), server.adminKey())
      }).pipe(Effect.scoped)
  )

  it.effect("gets no token of a link, in spans and in log lines", () =>
    Effect.gen(function* () {
      const { sent, url } = yield* collector
      const server = yield* serverWith({
        ROOMS: "accounts,notify",
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        LOG_LEVEL: "debug"
      })
      const token = "Token".repeat(8)
      for (const path of [
        `/n/m/${token}`,
        `/n/m/${token}/raw`,
        `/n/m/${token}/x`,
        `/n/join/${token}`,
        `/x/${token}`
      ])
        yield* Effect.promise(() => ask(server, "GET", path, { key: "" }))
      yield* Effect.promise(() => ask(server, "POST", `/api/v1/join/${token}`, { key: "", json: {} }))
      assert.strictEqual(yield* Effect.promise(() => server.stop()), 0)
      const traces = sent.get("/v1/traces") ?? ""
      assert.include(traces, "GET /n/m/:token")
      assert.include(traces, "/x/…")
      assert.notInclude([...sent.values(), server.output()].join("\n"), token)
    }).pipe(Effect.scoped)
  )

  it.effect("may be away: requests are served all the same", () =>
    Effect.gen(function* () {
      const server = yield* serverWith({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" })
      assert.strictEqual(
        (yield* Effect.promise(() => ask(server, "GET", "/healthz", { key: "" }))).status,
        200
      )
      assert.strictEqual(yield* Effect.promise(() => server.stop()), 0)
    }).pipe(Effect.scoped)
  )
})

// A database of its own: an administrator's key is shown once.
layer(TestStores.layer, { excludeTestServices: true })("a collector of spans", (it) => {
  it.effect(
    "gets a trace of each request by its route, of each call with its tries, and of nothing else",
    () =>
      Effect.gen(function* () {
        const { sent, url } = yield* collector
        const { clickhouseUrl } = yield* TestStores
        const server = yield* serverWith({
          ROOMS: "accounts,llm",
          CLICKHOUSE_URL: clickhouseUrl,
          OTEL_EXPORTER_OTLP_ENDPOINT: url
        })
        const traceId = "0af7651916cd43dd8448eb211c80319c"
        const call = (model: string) =>
          ask(server, "POST", "/api/v1/chat/completions", {
            json: { model, messages: [{ role: "user", content: "the-words-of-the-prompt" }] },
            headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
          })
        yield* Effect.promise(async () => {
          assert.strictEqual((await ask(server, "GET", "/api/v1/files/fil_1")).status, 404)
          assert.strictEqual((await call("sandbox/free")).status, 200)
          assert.strictEqual((await call("sandbox/nothing")).status, 404)
        })
        assert.strictEqual(yield* Effect.promise(() => server.stop()), 0)
        const traces = sent.get("/v1/traces") ?? ""
        assert.notInclude(traces, "the-words-of-the-prompt")
        const spans = spansIn(traces)
        const names = spans.map(({ name }) => name)
        assert.include(names, "GET /api/v1/files/:id")
        const calls = spans.filter(({ name }) => name === "POST /api/v1/chat/completions")
        assert.sameMembers(
          calls.map((span) => String(attributeOf(span, "http.response.status_code"))),
          ["200", "404"]
        )
        for (const span of calls) assert.strictEqual(span.traceId, traceId)
        const tries = spans.filter(({ name }) => name === "chat sandbox/free")
        assert.deepStrictEqual(
          tries.map((span) => [span.kind, span.traceId, attributeOf(span, "signalbox.outcome")]),
          [[3, traceId, "Answered"]]
        )
        // The server asks its stores all the time: that belongs to no trace.
        const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined || parentSpanId === "")
        for (const { kind, name } of roots) assert.strictEqual(kind, 2, name)
      }).pipe(Effect.scoped)
  )
})
