import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { reachOf } from "#src/files/access/Reach.ts"
import type { ArchivePlace } from "#src/files/archive/ArchivePlans.ts"
import { Archives } from "#src/files/archive/Archives.ts"
import { DirectoryChanges } from "#src/files/tree/DirectoryChanges.ts"
import { Trash } from "#src/files/tree/Trash.ts"
import { type Directory, Tree } from "#src/files/tree/Tree.ts"
import { treeServices } from "#src/files/tree/TreeServices.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { type Limits, limits } from "#src/Limits.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newUser, tagOf } from "#test/infra/blobs/BlobSteps.ts"
import { ensured, written } from "../tree/TreeSteps.ts"

const servicesWith = (changes: Partial<Limits>) =>
  Archives.layer.pipe(
    Layer.provideMerge(treeServices),
    Layer.provideMerge(BlobStore.layer),
    Layer.provideMerge(Notices.layer),
    Layer.provide(Layer.succeed(StorageQuotas, { of: () => null })),
    Layer.provideMerge(TestStores.layerWith({ limits: changes }))
  )

/** A place whose plan stays at its turn until the gate is open; `count`: those that came so far. */
const gated = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const turns = { count: 0 }
  const place = (directory: Directory) => ({
    directory,
    again: Effect.suspend(() => {
      turns.count++
      return Effect.as(Deferred.await(gate), directory)
    })
  })
  return { turns, place, open: Deferred.succeed(gate, undefined) }
})

const planOf = (place: ArchivePlace) => Effect.flatMap(Archives, ({ plan }) => Effect.scoped(plan(place)))

/** The same as it is asked for by its id. */
const found = (directory: Directory) =>
  Effect.map(Tree, (tree) => ({ directory, again: tree.directory(directory.userId, directory.id) }))

const by = (userId: string) => ({ userId, reach: reachOf({ scopes: ["full"] }) })

layer(servicesWith({ walkEntriesAtOnce: 4 }), { excludeTestServices: true })(
  "archives that wait for their turn",
  (it) => {
    it.effect("are planned 4 at once, 64 together with those that wait; further ones are 503", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual([limits.archivePlansAtOnce, limits.archivePlansUnderWay], [4, 64])
        const directory = yield* ensured(yield* newUser, "docs")
        const { open, place, turns } = yield* gated
        let refused = 0
        const plans = yield* Effect.forEach(Array.from({ length: 66 }), () =>
          planOf(place(directory)).pipe(
            Effect.tapErrorTag("ServiceUnavailable", () => Effect.sync(() => refused++)),
            Effect.result,
            Effect.forkChild
          )
        )
        yield* eventually(
          "two are refused",
          Effect.sync(() => refused === 2)
        )
        yield* eventually(
          "four have their turn",
          Effect.sync(() => turns.count >= 4)
        )
        yield* Effect.sleep(50)
        assert.deepStrictEqual([turns.count, refused], [4, 2])
        yield* open
        const made = yield* Effect.forEach(plans, Fiber.join)
        assert.strictEqual(made.filter(({ _tag }) => _tag === "Success").length, 64)
        assert.strictEqual((yield* planOf(yield* found(directory))).entries, 1)
      })
    )

    it.effect("have what is in the directory where it is by then, whatever is at its old place", () =>
      Effect.gen(function* () {
        const { update } = yield* DirectoryChanges
        const userId = yield* newUser
        for (const count of [2, 9]) {
          const docs = yield* ensured(userId, `docs${count}/a`)
          for (let n = 0; n < count; n++) yield* written(docs, `f${n}`, "mine")
          const place = yield* found(docs)
          yield* update(by(userId), docs.id, { name: "renamed" }, undefined)
          const other = yield* ensured(userId, `docs${count}/a`)
          yield* written(other, "other", "not asked for")
          const { entries, filename } = yield* planOf(place)
          assert.deepStrictEqual([filename, entries], ["renamed.tgz", count + 1])
          yield* update(by(userId), docs.id, { parentId: null, name: `bucket${count}` }, undefined)
          const moved = yield* planOf(place)
          assert.deepStrictEqual([moved.filename, moved.entries], [`bucket${count}.tgz`, count + 1])
        }
      })
    )

    it.effect("are not there where the directory went to the trash", () =>
      Effect.gen(function* () {
        const { trashDirectory } = yield* Trash
        const userId = yield* newUser
        for (const count of [2, 9]) {
          const docs = yield* ensured(userId, `docs${count}/a`)
          for (let n = 0; n < count; n++) yield* written(docs, `f${n}`, "mine")
          const place = yield* found(docs)
          yield* trashDirectory(by(userId), docs.id, undefined)
          assert.strictEqual(yield* tagOf(planOf(place)), "NotFound")
        }
      })
    )
  }
)

layer(servicesWith({ archivePlanMillis: 200, archivePlansAtOnce: 1 }), {
  excludeTestServices: true
})("archives whose plans take too long", (it) => {
  it.effect("are 503, at their turn and where they wait for it, and make room for others", () =>
    Effect.gen(function* () {
      assert.strictEqual(limits.archivePlanMillis, 120_000)
      const directory = yield* ensured(yield* newUser, "docs")
      const { place, turns } = yield* gated
      const tags = yield* Effect.all(
        Array.from({ length: 2 }, () => tagOf(planOf(place(directory)))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(tags, ["ServiceUnavailable", "ServiceUnavailable"])
      assert.isAtLeast(turns.count, 1)
      const { open, place: last } = yield* gated
      yield* open
      assert.strictEqual((yield* planOf(last(directory))).entries, 1)
    })
  )
})
