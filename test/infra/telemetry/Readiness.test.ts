import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"

const up = Effect.succeed<ComponentState>({ status: "up" })

describe("readiness", () => {
  it.effect("is there while no component is down, degraded ones included", () =>
    Effect.gen(function* () {
      const { register, report } = yield* Readiness
      assert.deepStrictEqual(yield* report, { status: "ready", components: {} })
      yield* register("log", up)
      yield* register("postgres", Effect.succeed({ status: "degraded", detail: "away" }))
      assert.deepStrictEqual(yield* report, {
        status: "ready",
        components: { log: { status: "up" }, postgres: { status: "degraded", detail: "away" } }
      })
      yield* register("log", Effect.succeed({ status: "down", detail: "disk" }))
      assert.strictEqual((yield* report).status, "unready")
    }).pipe(Effect.scoped, Effect.provide(Readiness.layer))
  )

  it.effect("takes a component that fails or does not answer for one that is down", () =>
    Effect.gen(function* () {
      const { register, report } = yield* Readiness
      yield* register("silent", Effect.never)
      yield* register("broken", Effect.die(new Error("secret")))
      const reported = yield* Effect.forkChild(report)
      yield* TestClock.adjust("10 seconds")
      const { components, status } = yield* Fiber.join(reported)
      assert.strictEqual(status, "unready")
      assert.match(components["silent"]?.detail ?? "", /^no answer in \d+ ms$/)
      assert.deepStrictEqual(components["broken"], { status: "down", detail: "the check failed" })
    }).pipe(Effect.scoped, Effect.provide(Readiness.layer))
  )

  it.effect("forgets a component whose scope has closed, and ends when the server drains", () =>
    Effect.gen(function* () {
      const { drain, register, report } = yield* Readiness
      yield* Effect.scoped(register("gone", Effect.succeed({ status: "down" })))
      assert.deepStrictEqual(yield* report, { status: "ready", components: {} })
      yield* drain
      assert.strictEqual((yield* report).status, "draining")
    }).pipe(Effect.provide(Readiness.layer))
  )
})
