import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { OwnerShares } from "#src/infra/gates/OwnerShares.ts"

const options = { attempts: 4, turnMillis: 10_000, restMillis: 30_000 }

/** Attempts that last until they are told to end. */
const makeStage = Effect.fnUntraced(function* (waiting: number) {
  const shares = new OwnerShares({ ...options, waiting })
  const begun: Array<string> = []
  const enter = Effect.fnUntraced(function* (owner: string, name: string) {
    const end = yield* Deferred.make<void>()
    const attempt = Effect.andThen(
      Effect.sync(() => begun.push(name)),
      Deferred.await(end)
    )
    const fiber = yield* Effect.forkChild(shares.within(owner, Effect.as(attempt, name)), {
      startImmediately: true
    })
    return {
      end: Effect.andThen(Deferred.succeed(end, undefined), Fiber.join(fiber)),
      joined: Fiber.join(fiber)
    }
  })
  return { begun, enter }
})

describe("the attempts of an owner beyond its share", () => {
  it.live("wait in line for those under way, and others find room meanwhile", () =>
    Effect.gen(function* () {
      const { begun, enter } = yield* makeStage(2)
      const [a1, a2, a3, a4, a5] = [
        yield* enter("a", "a1"),
        yield* enter("a", "a2"),
        yield* enter("a", "a3"),
        yield* enter("a", "a4"),
        yield* enter("a", "a5")
      ]
      assert.deepStrictEqual(begun, ["a1", "a2"])
      const refused = yield* a5.joined
      assert.isTrue(typeof refused === "object" && refused.isBusy && refused.restMillis > 0)
      const b1 = yield* enter("b", "b1")
      assert.deepStrictEqual(begun, ["a1", "a2", "b1"])
      assert.strictEqual(yield* a1.end, "a1")
      yield* b1.end
      yield* a2.end
      assert.deepStrictEqual(begun, ["a1", "a2", "b1", "a3", "a4"])
      assert.strictEqual(yield* a3.end, "a3")
      assert.strictEqual(yield* a4.end, "a4")
    })
  )

  it.live("are refused where none may wait", () =>
    Effect.gen(function* () {
      const { begun, enter } = yield* makeStage(0)
      yield* enter("a", "a1")
      yield* enter("a", "a2")
      const third = yield* enter("a", "a3")
      assert.isObject(yield* third.joined)
      assert.deepStrictEqual(begun, ["a1", "a2"])
    })
  )
})
