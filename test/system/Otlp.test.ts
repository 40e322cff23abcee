import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { createServer } from "node:http"
import { ask } from "#test/integration/ApiClient.ts"
import { startServer } from "#test/integration/ServerProcess.ts"
import { TestStores } from "#test/stores/TestStores.ts"

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

const jsonLines = (output: string): ReadonlyArray<string> =>
  output.split("\n").filter((line) => line.startsWith("{"))

layer(TestStores.layer, { excludeTestServices: true, timeout: 120_000 })(
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  (it) => {
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
  }
)
