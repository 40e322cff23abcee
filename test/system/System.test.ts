import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import { AccountsServer, type Answer } from "#test/accounts/AccountsServer.ts"

const without = (table: string, use: Effect.Effect<Answer, never, AccountsServer>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const rename = (from: string, to: string) =>
      Effect.orDie(sql`ALTER TABLE ${sql(from)} RENAME TO ${sql(to)}`)
    return yield* Effect.acquireUseRelease(
      rename(table, `${table}_away`),
      () => use,
      () => rename(`${table}_away`, table)
    )
  })

const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(AccountsServer, (server) => server.ask("GET", path, { headers }))

layer(AccountsServer.layer(), { excludeTestServices: true, timeout: 60_000 })("the system", (it) => {
  it.effect("answers an unhandled fault with 500 and the request's id, and keeps the cause for the log", () =>
    Effect.gen(function* () {
      const { logged } = yield* AccountsServer
      const headers = { "x-request-id": "fault-1" }
      const flat = yield* without("request_counts", ask("/api/v1/stats", headers))
      assert.deepStrictEqual(
        [flat.status, flat.json, flat.headers.get("x-request-id")],
        [500, { error: "Internal error (request fault-1)" }, "fault-1"]
      )
      const nested = yield* without("keys", ask("/api/v1/keys", { "x-request-id": "fault-2" }))
      assert.deepStrictEqual(
        [nested.status, nested.json],
        [
          500,
          {
            error: {
              message: "Internal error (request fault-2)",
              type: "server_error",
              code: "internal_error",
              param: null
            }
          }
        ]
      )
      for (const [id, table] of [
        ["fault-1", "request_counts"],
        ["fault-2", "keys"]
      ] as const) {
        const line = logged()
          .map((text): Record<string, unknown> => JSON.parse(text))
          .find((entry) => entry["requestId"] === id && entry["level"] === "error")
        assert.include(String(line?.["cause"]), `"${table}" does not exist`)
      }
    })
  )

  it.effect("is alive and ready, component by component, without a key", () =>
    Effect.gen(function* () {
      const server = yield* AccountsServer
      const alive = yield* server.ask("GET", "/healthz", { key: "" })
      assert.deepStrictEqual([alive.status, alive.json], [200, { status: "ok" }])
      const ready = yield* server.ask("GET", "/readyz", { key: "" })
      assert.strictEqual(ready.status, 200)
      const { components, status } = ready.json as { status: string; components: Record<string, object> }
      assert.strictEqual(status, "ready")
      assert.includeMembers(Object.keys(components), ["postgres", "clickhouse", "log", "rate-limits"])
      assert.deepStrictEqual(components["postgres"], { status: "up" })
    })
  )

  it.effect("counts its answers by method and status on /metrics, whatever methods callers invent", () =>
    Effect.gen(function* () {
      const server = yield* AccountsServer
      yield* server.ask("GET", "/api/v1/nothing-to-count")
      yield* server.ask("PROPFIND", "/api/v1/health")
      const metrics = yield* server.ask("GET", "/metrics", { key: "" })
      assert.strictEqual(metrics.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
      const text = Buffer.from(metrics.bytes).toString()
      assert.match(text, /^# TYPE signalbox_http_requests_total counter$/m)
      assert.match(text, /^signalbox_http_requests_total\{[^}]*method="GET"[^}]*status="404"[^}]*\} [1-9]/m)
      assert.match(text, /^signalbox_http_request_seconds_bucket\{/m)
      assert.match(text, /method="other"/)
      assert.notInclude(text, "PROPFIND")
    })
  )

  it.effect("says 503 while it drains, and still answers", () =>
    Effect.gen(function* () {
      const server = yield* AccountsServer
      yield* Effect.flatMap(Readiness, ({ drain }) => drain)
      const ready = yield* server.ask("GET", "/readyz", { key: "" })
      assert.strictEqual(ready.status, 503)
      assert.deepInclude(ready.json, { status: "draining" })
      assert.strictEqual((yield* server.ask("GET", "/api/v1/health")).status, 200)
    })
  )
})
