import { randomBytes } from "node:crypto"
import { mkdir, symlink, truncate, utimes, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ByteClient } from "#src/files/cli/bytes/ByteClient.ts"
import { sendForm } from "#src/files/cli/bytes/FormUpload.ts"
import { findFiles, hashOf, type LocalFile } from "#src/files/cli/bytes/LocalFiles.ts"
import { ResumableUpload } from "#src/files/cli/bytes/ResumableUpload.ts"
import type { FileThere, Look, UploadTarget } from "#src/files/cli/bytes/UploadTarget.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { get, live, sha256Of } from "../transfers/TransferSteps.ts"
import { cuttingProxy } from "./CuttingProxy.ts"
import { localDirectory } from "./LocalDirectory.ts"

const told = {
  onBytes: () => undefined,
  signal: new AbortController().signal,
  pause: () => sleep(10)
}
const mebibyte = 1024 * 1024

const targetOf = (url: string, key: string, below = "a/"): UploadTarget => ({
  url,
  headers: { authorization: `Bearer ${key}` },
  bucket: "docs",
  below
})

/** A file of this machine with these bytes. */
const localFile = Effect.fnUntraced(function* (bytes: Uint8Array, name = "long.bin") {
  const path = join(yield* localDirectory, name)
  yield* Effect.promise(() => writeFile(path, bytes))
  yield* Effect.promise(() => utimes(path, 1_700_000_000, 1_700_000_000))
  const { files } = yield* Effect.promise(() => findFiles([path]))
  return files[0] as LocalFile
})

const sent = (client: ByteClient, target: UploadTarget, file: LocalFile, earlier?: string) =>
  Effect.promise(async () =>
    new ResumableUpload(client, target, file, await hashOf(file), told).send(earlier)
  )

layer(TestServer.shared, live)("an upload of the command line", (it) => {
  it.effect("goes over connections that are cut, and sends nothing twice but what was lost in flight", () =>
    Effect.gen(function* () {
      const { makeUser, port } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(8 * mebibyte)
      const file = yield* localFile(bytes)
      const random = seededRandom(7)
      const proxy = yield* cuttingProxy(port, () => Math.floor(random() * 2 * mebibyte) + 2_000)
      const { fileId } = yield* sent(yield* ByteClient.make, targetOf(proxy.url, key), file)
      const answer = yield* get(fileId, key)
      assert.strictEqual(sha256Of(answer.bytes), sha256Of(bytes))
      assert.strictEqual(answer.headers.get("last-modified"), new Date(1_700_000_000_000).toUTCString())
      assert.isAbove(proxy.connections(), 5)
      assert.isBelow(proxy.sentBytes(), bytes.length + proxy.connections() * mebibyte)
    }).pipe(Effect.scoped)
  )

  it.effect("goes on where an earlier run ended, and begins anew where the server has lost it", () =>
    Effect.gen(function* () {
      const { ask, makeUser, port, url } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(2 * mebibyte)
      const file = yield* localFile(bytes)
      const begun = yield* ask("POST", "/api/uploads", {
        key,
        headers: {
          "tus-resumable": "1.0.0",
          "upload-length": String(bytes.length),
          "upload-metadata": `filename ${Buffer.from("x").toString("base64")}`
        }
      })
      const path = begun.headers.get("location") ?? ""
      yield* ask("PATCH", path, {
        key,
        headers: {
          "tus-resumable": "1.0.0",
          "upload-offset": "0",
          "content-type": "application/offset+octet-stream"
        },
        body: bytes.subarray(0, 1_500_000)
      })
      const proxy = yield* cuttingProxy(port, () => Number.MAX_SAFE_INTEGER)
      const client = yield* ByteClient.make
      const resumed = yield* sent(client, targetOf(proxy.url, key), file, path)
      assert.strictEqual(sha256Of((yield* get(resumed.fileId, key)).bytes), sha256Of(bytes))
      assert.isBelow(proxy.sentBytes(), 700_000)

      const anew = yield* sent(client, targetOf(url, key), file, "/api/uploads/upl_0000000000000000000000")
      assert.strictEqual(sha256Of((yield* get(anew.fileId, key)).bytes), sha256Of(bytes))
    }).pipe(Effect.scoped)
  )

  it.effect(
    "fails with the file's name where it becomes shorter, and with the server's words where it is refused",
    () =>
      Effect.gen(function* () {
        const { makeKey, makeUser, url } = yield* TestServer
        const { key } = yield* makeUser()
        const client = yield* ByteClient.make
        const file = yield* localFile(randomBytes(mebibyte))
        const hash = "0".repeat(64)
        const send = (target: UploadTarget, sha256: string) =>
          Effect.map(
            Effect.exit(
              Effect.promise(() => new ResumableUpload(client, target, file, sha256, told).send(undefined))
            ),
            (exit) => JSON.stringify(exit)
          )
        assert.include(yield* send(targetOf(url, key), hash), "sha256: the bytes have the hash")
        const { key: reads } = yield* makeKey({ scopes: ["read"] }, key)
        assert.include(yield* send(targetOf(url, reads), hash), "RequestRefused")
        assert.include(yield* send(targetOf(url, "sk_none"), hash), "KeyRefused")
        yield* Effect.promise(() => truncate(file.path, 1_000))
        assert.include(yield* send(targetOf(url, key), hash), "became shorter")
      }).pipe(Effect.scoped)
  )

  it.effect("sends short files by a form, and those that are right also where one is not", () =>
    Effect.gen(function* () {
      const { makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const here = yield* localDirectory
      const long = "x".repeat(200)
      yield* Effect.promise(async () => {
        await mkdir(join(here, "dir/sub"), { recursive: true })
        await mkdir(join(here, "dir/empty"))
        await symlink("/etc/passwd", join(here, "dir/link"))
        await writeFile(join(here, "dir/a.txt"), "a")
        await writeFile(join(here, "dir/b\n.txt"), "a control character")
        await writeFile(join(here, 'dir/sub/"ü".txt'), "ü")
        await writeFile(join(here, `dir/sub/${long}`), "")
      })
      const { files, skipped } = yield* Effect.promise(() => findFiles([join(here, "dir")]))
      assert.deepStrictEqual(skipped, [join(here, "dir/empty"), join(here, "dir/link")])
      const client = yield* ByteClient.make
      const { sent, unsent } = yield* Effect.promise(() =>
        sendForm({ client, target: targetOf(url, key, ""), told, look: async () => undefined }, files)
      )
      assert.deepStrictEqual(
        sent.map(({ file }) => file.relative),
        ["dir/a.txt", 'dir/sub/"ü".txt', `dir/sub/${long}`]
      )
      assert.deepStrictEqual(
        unsent.map(({ file }) => file.relative),
        ["dir/b\n.txt"]
      )
      assert.match(unsent[0]?.problem ?? "", /^path: expected a name/)
      const [first] = sent
      assert.strictEqual(Buffer.from((yield* get(first?.fileId ?? "", key)).bytes).toString(), "a")
    }).pipe(Effect.scoped)
  )

  it.effect("sends a form again whose answer was lost, without what the server has by then", () =>
    Effect.gen(function* () {
      const { ask, makeUser, port } = yield* TestServer
      const { key } = yield* makeUser()
      const here = yield* localDirectory
      yield* Effect.promise(() => writeFile(join(here, "a.txt"), "a"))
      yield* Effect.promise(() => writeFile(join(here, "b.txt"), "b"))
      const { files } = yield* Effect.promise(() => findFiles([join(here, "a.txt"), join(here, "b.txt")]))
      const run = Effect.runPromiseWith(yield* Effect.context<TestServer>())
      const found = Effect.fnUntraced(function* (file: LocalFile) {
        const { json } = yield* ask("GET", `/api/files?path=docs/a/${file.relative}`, { key })
        const [there] = (json as { files: ReadonlyArray<{ id: string; fileHash: string; version: number }> })
          .files
        return there
      })
      const real: Look = async (some) => {
        const there = new Map<LocalFile, FileThere>()
        for (const file of some) {
          const known = await run(found(file))
          if (known !== undefined) there.set(file, { fileId: known.id, sha256: known.fileHash })
        }
        return there
      }
      const looks: Array<Look> = []
      /** Sends both files, the first form of which is not answered, and tells which versions they are then. */
      const versions = Effect.fnUntraced(function* (...first: ReadonlyArray<Look>) {
        looks.splice(0, looks.length, ...first)
        const look: Look = (some) => (looks.shift() ?? real)(some)
        const proxy = yield* cuttingProxy(port, () => Number.MAX_SAFE_INTEGER, "cut", "POST /api/upload")
        const way = { client: yield* ByteClient.make, target: targetOf(proxy.url, key), told, look }
        const { sent, unsent } = yield* Effect.promise(() => sendForm(way, files))
        const now = yield* Effect.forEach(files, found)
        assert.sameMembers(
          sent.map(({ fileId }) => fileId),
          now.map((file) => file?.id)
        )
        assert.deepStrictEqual(unsent, [])
        return now.map((file) => file?.version)
      })
      assert.deepStrictEqual(yield* versions(), [1, 1])
      // Where the server shows them a moment later: they have been taken, and come behind the second form.
      yield* Effect.promise(() => writeFile(join(here, "a.txt"), "A"))
      yield* Effect.promise(() => writeFile(join(here, "b.txt"), "B"))
      const before = yield* Effect.promise(() => real(files))
      assert.deepStrictEqual(yield* versions(async () => before), [2, 2])
      // A key that may not read does not learn it.
      assert.deepStrictEqual(yield* versions(async () => undefined), [4, 4])
    }).pipe(Effect.scoped)
  )
})
