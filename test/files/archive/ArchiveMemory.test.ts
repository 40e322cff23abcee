import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Archives } from "#src/files/archive/Archives.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Directory } from "#src/files/tree/Tree.ts"
import { GrowingShare } from "#src/infra/shares/GrowingShare.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newUser, tagOf } from "#test/infra/blobs/BlobSteps.ts"
import { ensured, treeLayer, written } from "../tree/TreeSteps.ts"

/** A single user gets half of it, which is what the smallest plan takes. */
const limits = { archivePlansBytes: 8 * 1024 }
const services = Archives.layer.pipe(
  Layer.provideMerge(treeLayer),
  Layer.provideMerge(TestStores.layerWith({ limits }))
)

/** It stays where it is. */
const place = (directory: Directory) => ({ directory, again: Effect.succeed(directory) })

layer(services, { excludeTestServices: true })("the memory of archives", (it) => {
  it.effect("is bounded: above it an archive is 503, until others have ended", () =>
    Effect.gen(function* () {
      const { plan } = yield* Archives
      const userId = yield* newUser
      const small = yield* ensured(userId, "small")
      yield* written(small, "f", "1")
      const long = yield* ensured(userId, "long")
      for (let n = 0; n < 30; n++) yield* written(long, `${n}`.padEnd(200, "n"), "")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { entries, filename } = yield* plan(place(small))
          assert.deepStrictEqual([entries, filename], [2, "small.tgz"])
          assert.strictEqual(yield* tagOf(Effect.scoped(plan(place(small)))), "ServiceUnavailable")
        })
      )
      assert.strictEqual(yield* tagOf(Effect.scoped(plan(place(long)))), "ServiceUnavailable")
      // All of it was given back.
      assert.strictEqual((yield* Effect.scoped(plan(place(small)))).entries, 2)
    })
  )

  it.effect("is held until the scope has ended and the last answer is sent", () =>
    Effect.sync(() => {
      const shares = new FairShares(1000)
      const memory = new GrowingShare(shares, "user")
      assert.isTrue(memory.grow(100))
      assert.isTrue(memory.grow(400))
      assert.isFalse(memory.grow(700))
      assert.strictEqual(shares.total, 400)
      memory.hold()
      memory.release()
      assert.strictEqual(shares.total, 400)
      memory.release()
      assert.strictEqual(shares.total, 0)
    })
  )
})
