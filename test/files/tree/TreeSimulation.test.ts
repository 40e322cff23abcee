import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Predicate, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { reachOf } from "#src/files/access/Reach.ts"
import { DirectoryChanges } from "#src/files/tree/DirectoryChanges.ts"
import { FileChanges } from "#src/files/tree/FileChanges.ts"
import type { Caller } from "#src/files/tree/Holding.ts"
import { Restoring } from "#src/files/tree/Restoring.ts"
import { StorageRoom } from "#src/files/tree/StorageRoom.ts"
import { Trash } from "#src/files/tree/Trash.ts"
import { treeServices } from "#src/files/tree/TreeServices.ts"
import { Tree } from "#src/files/tree/Tree.ts"
import { Versions } from "#src/files/tree/Versions.ts"
import { type Entry, Walk } from "#src/files/tree/Walk.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { newUser, sha256Of } from "#test/infra/blobs/BlobSteps.ts"
import { type ModelFile, TreeModel } from "./TreeModel.ts"
import { faultsOfTree, written } from "./TreeSteps.ts"

const services = treeServices.pipe(
  Layer.provideMerge(BlobStore.layer),
  Layer.provideMerge(Notices.layer),
  Layer.provide(Layer.succeed(StorageQuotas, { of: () => null })),
  Layer.provideMerge(TestStores.layerWith({ limits: { walkEntriesAtOnce: 5 } }))
)

/** Few names, so that they meet. */
const names = ["a", "b", "ä", "a.txt"]
const onConflicts = ["fail", "replace", "rename"] as const

/** Random numbers and choices of a seed. */
class Dice {
  private readonly random: () => number
  constructor(seed: number) {
    this.random = seededRandom(seed)
  }
  below(count: number): number {
    return Math.floor(this.random() * count)
  }
  of<A>(list: ReadonlyArray<A>): A | undefined {
    return list[this.below(list.length)]
  }
  name(): string {
    return this.of(names) ?? "a"
  }
}

const makeSteps = Effect.fnUntraced(function* (seed: number) {
  const userId = yield* newUser
  const by: Caller = { userId, reach: reachOf({ scopes: ["full"] }) }
  const dice = new Dice(seed)
  const model = new TreeModel()
  const tree = yield* Tree
  const directories = yield* DirectoryChanges
  const changes = yield* FileChanges
  const trash = yield* Trash
  const restoring = yield* Restoring
  const versions = yield* Versions
  let texts = 0

  /** The answer of a step, or the tag of its error. */
  const tried = <A, E extends { readonly _tag: string }, R>(step: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.result(step), (made) =>
      Result.isSuccess(made) ? { done: made.success } : { tag: made.failure._tag }
    )
  const expectFailure = (made: { readonly tag?: string }, tag: string) =>
    assert.strictEqual(made.tag, tag, `seed ${seed}`)

  const makeDirectory = Effect.gen(function* () {
    const parent = dice.below(3) === 0 ? undefined : dice.of(model.liveDirectories())
    const name = dice.name()
    const made = yield* tried(directories.create(by, { name, parentId: parent?.id ?? null }))
    if (parent === undefined && name === "ä") return expectFailure(made, "BadRequest")
    if (model.directoryNamed(parent?.id, name) !== undefined) return expectFailure(made, "Conflict")
    const id = made.done?.id ?? assert.fail(`${made.tag}, seed ${seed}`)
    model.directories.set(id, { id, parent: parent?.id, name, entry: undefined })
  })
  const write = Effect.gen(function* () {
    const place = dice.of(model.liveDirectories())
    if (place === undefined) return
    const [name, text] = [dice.name(), `text ${++texts}`]
    const file = yield* written(yield* tree.directory(userId, place.id), name, text)
    const before = model.fileNamed(place.id, name)
    assert.strictEqual(file.version, (before?.versions.length ?? 0) + 1, `seed ${seed}`)
    if (before !== undefined) before.versions.push(text)
    else
      model.files.set(file.groupId, {
        id: file.groupId,
        parent: place.id,
        name,
        entry: undefined,
        versions: [text]
      })
  })
  const entryOf = (itemId: string) =>
    Effect.map(trash.list(userId, "all", { limit: 1_000 }), ({ rows }) =>
      rows.find((row) => row.itemId === itemId)
    )
  const replace = Effect.fnUntraced(function* (file: ModelFile | undefined) {
    if (file !== undefined)
      file.entry = (yield* entryOf(file.id))?.id ?? assert.fail(`no entry, seed ${seed}`)
  })
  const moveFile = Effect.gen(function* () {
    const [file, to] = [dice.of(model.liveFiles()), dice.of(model.liveDirectories())]
    if (file === undefined || to === undefined) return
    const [name, onConflict] = [dice.name(), dice.of(onConflicts) ?? "fail"]
    const made = yield* tried(changes.move(by, file.id, { name, directoryId: to.id, onConflict }, undefined))
    const place = model.nameFor(file, to.id, name, onConflict)
    if (place === undefined) return expectFailure(made, "Conflict")
    yield* replace(place.replaced)
    Object.assign(file, { parent: to.id, name: place.name })
  })
  const copy = Effect.gen(function* () {
    const [file, to] = [dice.of(model.liveFiles()), dice.of(model.liveDirectories())]
    if (file === undefined || to === undefined) return
    const [name, onConflict] = [dice.name(), dice.of(onConflicts) ?? "fail"]
    const made = yield* tried(changes.copy(by, file.id, { name, directoryId: to.id, onConflict }, undefined))
    const text = file.versions.at(-1) ?? ""
    const place = model.nameFor(undefined, to.id, name, onConflict)
    if (place === undefined) return expectFailure(made, "Conflict")
    if (place.replaced !== undefined) return place.replaced.versions.push(text)
    const id = made.done?.groupId ?? assert.fail(`${made.tag}, seed ${seed}`)
    model.files.set(id, { id, parent: to.id, name: place.name, entry: undefined, versions: [text] })
  })
  const moveDirectory = Effect.gen(function* () {
    const directory = dice.of(model.liveDirectories())
    if (directory === undefined) return
    const [to, name] = [dice.below(4) === 0 ? undefined : dice.of(model.liveDirectories()), dice.name()]
    const made = yield* tried(
      directories.update(by, directory.id, { name, parentId: to?.id ?? null }, undefined)
    )
    if (to === undefined && name === "ä") return expectFailure(made, "BadRequest")
    if (to?.id === directory.parent && name === directory.name) return
    if (model.isBelow(to?.id, directory.id)) return expectFailure(made, "BadRequest")
    if (model.directoryNamed(to?.id, name) !== undefined) return expectFailure(made, "Conflict")
    assert.isUndefined(made.tag, `seed ${seed}`)
    Object.assign(directory, { parent: to?.id, name })
  })
  const revert = Effect.gen(function* () {
    const file = dice.of(model.liveFiles())
    if (file === undefined) return
    const number = dice.below(file.versions.length) + 1
    const history = yield* versions.history(file.id)
    const version = history.find((one) => one.version === number)
    yield* changes.revert(by, version?.id ?? "", undefined)
    if (number < file.versions.length) file.versions.push(file.versions[number - 1] ?? "")
  })
  const trashFile = Effect.gen(function* () {
    const file = dice.of(model.liveFiles())
    if (file !== undefined) file.entry = yield* trash.trashFile(by, file.id, undefined)
  })
  const trashDirectory = Effect.gen(function* () {
    const directory = dice.of(model.liveDirectories())
    if (directory === undefined || dice.below(3) > 0) return
    model.trashDirectory(directory, yield* trash.trashDirectory(by, directory.id, undefined))
  })
  const restoreFile = Effect.gen(function* () {
    const trashed = [...model.files.values()].filter(
      ({ entry, parent }) => entry !== undefined && model.isLive(parent)
    )
    const file = dice.of(trashed)
    if (file?.parent === undefined || !model.directories.has(file.parent)) return
    const onConflict = dice.of(onConflicts) ?? "fail"
    const made = yield* tried(restoring.file(by, file.id, onConflict))
    const place = model.nameFor(file, file.parent, file.name, onConflict)
    if (place === undefined) return expectFailure(made, "Conflict")
    assert.isUndefined(made.tag, `seed ${seed}`)
    yield* replace(place.replaced)
    Object.assign(file, { name: place.name, entry: undefined })
  })
  const restoreDirectory = Effect.gen(function* () {
    const { rows } = yield* trash.list(userId, "all", { limit: 1_000 })
    const entry = dice.of(rows.filter(({ kind }) => kind === "directory"))
    const directory = entry === undefined ? undefined : model.directories.get(entry.itemId)
    if (entry === undefined || directory === undefined) return
    if (
      directory.parent !== undefined &&
      !(model.isLive(directory.parent) && model.directories.has(directory.parent))
    )
      return
    const onConflict = dice.below(2) === 0 ? "fail" : "rename"
    const made = yield* tried(restoring.directory(by, directory.id, onConflict))
    const isTaken = model.directoryNamed(directory.parent, directory.name) !== undefined
    if (isTaken && onConflict === "fail") return expectFailure(made, "Conflict")
    assert.isUndefined(made.tag, `seed ${seed}`)
    directory.name = made.done?.name ?? ""
    for (const node of model.of(entry.id)) node.entry = undefined
  })
  const purge = Effect.gen(function* () {
    const { rows } = yield* trash.list(userId, "all", { limit: 1_000 })
    const entry = dice.of(rows)
    if (entry === undefined || dice.below(3) > 0) return
    yield* trash.remove(userId, entry.id)
    model.purge(entry.id)
  })
  const steps: ReadonlyArray<Effect.Effect<unknown, unknown, BlobStore | Versions>> = [
    makeDirectory,
    makeDirectory,
    write,
    write,
    write,
    moveFile,
    copy,
    moveDirectory,
    revert,
    trashFile,
    trashDirectory,
    restoreFile,
    restoreDirectory,
    purge
  ]
  return {
    model,
    userId,
    step: Effect.suspend(() => dice.of(steps) ?? write)
  }
})

const hashOf = (text: string): string => sha256Of(Buffer.from(text))

/** The real tree, as lines like the model's. */
const linesOf = Effect.fnUntraced(function* (userId: string, texts: ReadonlyMap<string, string>) {
  const { below, buckets } = yield* Walk
  const lines: Array<string> = []
  for (const bucket of yield* buckets(userId)) {
    lines.push(`${bucket.name}/`)
    const add = (entry: Entry) => {
      const path = `${bucket.name}/${entry.path}`
      if (entry.kind === "directory") return path
      return `${path} ${entry.file.version} ${texts.get(entry.file.sha256) ?? "?"}`
    }
    yield* below(bucket, (entries) => Effect.sync(() => lines.push(...entries.map(add))))
  }
  return lines.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
})

/** A random change of a tree by whoever is there; answers the tag of its error, or `done`. */
const makeWorker = Effect.fnUntraced(function* (userId: string, dice: Dice) {
  const by: Caller = { userId, reach: reachOf({ scopes: ["full"] }) }
  const sql = yield* SqlClient
  const tree = yield* Tree
  const directories = yield* DirectoryChanges
  const changes = yield* FileChanges
  const trash = yield* Trash
  const restoring = yield* Restoring
  const anyOf = (table: "directories" | "file_groups", isTrashed = false) =>
    Effect.map(
      sql<{ id: string }>`SELECT id FROM ${sql(table)} WHERE user_id = ${userId}
        AND (trash_id IS NOT NULL) = ${isTrashed} ORDER BY id`,
      (rows) => dice.of(rows)?.id ?? "none"
    )
  const path = () => ["x", "y"].slice(dice.below(2)).slice(0, 1).concat(dice.name(), dice.name())
  const onConflict = () => dice.of(onConflicts) ?? "fail"
  const write = Effect.gen(function* () {
    const place = yield* tree.ensure(userId, undefined, path())
    yield* written(place, dice.name(), `text ${dice.below(20)}`)
  })
  const steps: ReadonlyArray<
    Effect.Effect<unknown, { readonly _tag: string } | string, BlobStore | Versions>
  > = [
    write,
    write,
    write,
    Effect.gen(function* () {
      const target = { name: dice.name(), directoryId: yield* anyOf("directories"), onConflict: onConflict() }
      yield* changes.move(by, yield* anyOf("file_groups"), target, undefined)
    }),
    Effect.gen(function* () {
      const target = { name: dice.name(), directoryId: yield* anyOf("directories"), onConflict: onConflict() }
      yield* changes.copy(by, yield* anyOf("file_groups"), target, undefined)
    }),
    Effect.gen(function* () {
      const change = { name: dice.name(), parentId: yield* anyOf("directories") }
      yield* directories.update(by, yield* anyOf("directories"), change, undefined)
    }),
    Effect.flatMap(anyOf("file_groups"), (id) => trash.trashFile(by, id, undefined)),
    Effect.flatMap(anyOf("directories"), (id) => trash.trashDirectory(by, id, undefined)),
    Effect.flatMap(anyOf("file_groups", true), (id) => restoring.file(by, id, onConflict())),
    Effect.flatMap(anyOf("directories", true), (id) => restoring.directory(by, id, "rename")),
    Effect.suspend(() => (dice.below(4) === 0 ? trash.empty(userId) : Effect.void))
  ]
  return Effect.suspend(() => dice.of(steps) ?? write).pipe(
    Effect.result,
    Effect.map((made) => {
      if (Result.isSuccess(made)) return "done"
      const { failure } = made
      return Predicate.isString(failure) ? failure : failure._tag
    })
  )
})

layer(services, { excludeTestServices: true, timeout: 120_000 })("a simulated tree", (it) => {
  for (const seed of [1, 2, 3, 4])
    it.effect(`is what the model says, whatever is done to it (seed ${seed})`, () =>
      Effect.gen(function* () {
        const { model, step, userId } = yield* makeSteps(seed)
        const room = yield* StorageRoom
        for (let count = 1; count <= 160; count++) {
          yield* step
          if (count % 20 > 0) continue
          const texts = new Map(
            [...model.files.values()].flatMap(({ versions }) => versions).map((text) => [hashOf(text), text])
          )
          const note = `seed ${seed}, step ${count}`
          assert.deepStrictEqual(yield* linesOf(userId, texts), model.lines(), note)
          assert.deepStrictEqual(yield* faultsOfTree(userId), [], note)
          assert.strictEqual((yield* room.usage(userId)).usedBytes, model.usedBytes(), note)
        }
      })
    )

  for (const seed of [1, 2])
    it.effect(`has no fault and no circle of locks, whatever is done to it at once (seed ${seed})`, () =>
      Effect.gen(function* () {
        const userId = yield* newUser
        const worker = yield* makeWorker(userId, new Dice(seed))
        const outcomes = yield* Effect.all(
          Array.from({ length: 8 }, () => Effect.all(Array.from({ length: 25 }, () => worker))),
          { concurrency: "unbounded" }
        )
        const counts = Object.groupBy(outcomes.flat(), (outcome) => outcome)
        assert.hasAnyKeys(counts, ["done"])
        const expected = ["done", "BadRequest", "Conflict", "NotFound"]
        assert.deepStrictEqual(
          Object.keys(counts).filter((one) => !expected.includes(one)),
          [],
          `seed ${seed}`
        )
        assert.deepStrictEqual(yield* faultsOfTree(userId), [], `seed ${seed}`)
      })
    )
})
