import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Sink } from "#streams/kernel/Sink.ts"
import { SinkCalls } from "#streams/kernel/SinkCalls.ts"

const batch = { logId: 1n, from: 0, to: 1, records: [], recovering: false, token: "t" }

describe("calls of a sink", () => {
  it.effect("go on behind one that neither answers nor can be interrupted, as a COMMIT", () =>
    Effect.gen(function* () {
      let count = 0
      const sink: Sink = {
        write: () =>
          Effect.suspend(() => (count++ === 0 ? Effect.uninterruptible(Effect.never) : Effect.void)),
        check: Effect.void
      }
      const calls = new SinkCalls(sink, 1_000)
      const first = yield* Effect.forkChild(Effect.flip(calls.write(batch)))
      const second = yield* Effect.forkChild(calls.write(batch))
      yield* TestClock.adjust(1_000)
      assert.strictEqual((yield* Fiber.join(first)).problem, "it did not answer in time")
      assert.isUndefined(yield* Fiber.join(second))
      assert.strictEqual(count, 2)
    })
  )
})
