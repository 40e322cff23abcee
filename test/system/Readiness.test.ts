import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const

interface Report {
  readonly status: string
  readonly components: Readonly<Record<string, ComponentState>>
}

const readyz = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", "/readyz", { key: "" }), ({ json, status }) => ({ status, report: json as Report }))
)

layer(TestServer.own(), live)("/readyz", (it) => {
  it.effect("is 200 without a key and says how each component is", () =>
    Effect.gen(function* () {
      // A component may be behind for a moment on a busy machine.
      const isUp = ({ report }: { readonly report: Report }) =>
        Object.values(report.components).every(({ status }) => status === "up")
      yield* eventually("every component is up", Effect.map(readyz, isUp))
      const { report, status } = yield* readyz
      assert.deepStrictEqual([status, report.status], [200, "ready"])
      assert.deepStrictEqual(Object.keys(report.components).toSorted(), [
        "agents",
        "analytics",
        "blobs",
        "calls",
        "catalogue",
        "channels",
        "clickhouse",
        "disk",
        "jobs",
        "ledger",
        "log",
        "mail",
        "notify",
        "postgres",
        "quarantine",
        "rate-limits"
      ])
    })
  )

  it.effect(
    "stays 200 while a component is degraded, and is 503 while one is down, fails or does not answer",
    () =>
      Effect.gen(function* () {
        const readiness = yield* Readiness
        for (const [check, expected, component] of [
          [
            Effect.succeed({ status: "degraded", detail: "slow" }),
            [200, "ready"],
            { status: "degraded", detail: "slow" }
          ],
          [
            Effect.succeed({ status: "down", detail: "full" }),
            [503, "unready"],
            { status: "down", detail: "full" }
          ],
          [Effect.die(new Error("secret")), [503, "unready"], { status: "down", detail: "the check failed" }],
          [Effect.never, [503, "unready"], { status: "down", detail: "no answer in 2000 ms" }]
        ] as ReadonlyArray<
          readonly [Effect.Effect<ComponentState>, ReadonlyArray<unknown>, ComponentState]
        >) {
          const { report, status } = yield* Effect.scoped(
            Effect.andThen(readiness.register("test", check), readyz)
          )
          assert.deepStrictEqual([status, report.status], expected)
          assert.deepStrictEqual(report.components["test"], component)
        }
        assert.strictEqual((yield* readyz).status, 200)
      })
  )

  it.effect("answers /healthz whatever the components say: a restart would not help", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const readiness = yield* Readiness
      const alive = Effect.scoped(
        Effect.andThen(
          readiness.register("test", Effect.succeed({ status: "down" })),
          ask("GET", "/healthz", { key: "" })
        )
      )
      const { json, status } = yield* alive
      assert.deepStrictEqual([status, json], [200, { status: "ok" }])
    })
  )

  it.effect("is 503 `draining` from the first step of a shutdown, while requests are still answered", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const readiness = yield* Readiness
      yield* readiness.drain
      const { report, status } = yield* readyz
      assert.deepStrictEqual([status, report.status], [503, "draining"])
      assert.strictEqual((yield* ask("GET", "/api/v1/health")).status, 200)
    })
  )
})
