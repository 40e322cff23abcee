import { randomBytes } from "node:crypto"
import { link, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it as pure, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ByteClient } from "#src/files/cli/bytes/ByteClient.ts"
import { download } from "#src/files/cli/bytes/Download.ts"
import { PartFile } from "#src/files/cli/bytes/PartFile.ts"
import { type Address, lookAt, nameIn } from "#src/files/cli/bytes/RemoteBytes.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { shared } from "../links/LinkSteps.ts"
import { live, sha256Of, uploaded } from "../transfers/TransferSteps.ts"
import { cuttingProxy } from "./CuttingProxy.ts"
import { localDirectory } from "./LocalDirectory.ts"

const never = new AbortController().signal
const soon = () => sleep(10)

/** Downloads to a path, and answers where it went on. */
const fetchTo = (client: ByteClient, address: Address, path: string, force = false) =>
  Effect.promise(async () => {
    const remote = await lookAt(client, address, { signal: never })
    const sink = await PartFile.open(path, remote, force)
    const resumedAt = sink.offset
    try {
      await download(client, remote, sink, { onBytes: () => undefined, signal: never, pause: soon })
    } finally {
      await sink.close()
    }
    return { remote, resumedAt }
  })

/** The words of what a promise is rejected with. */
const refusalOf = (work: Effect.Effect<unknown>) =>
  Effect.map(Effect.exit(work), (exit) =>
    exit._tag === "Failure" ? JSON.stringify(exit.cause) : "no failure"
  )

const mebibyte = 1024 * 1024

/** The address of a server of one's own, until the test ends. */
const servedBy = (listener: RequestListener) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer(listener)
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        return server
      }),
      (server) => Effect.sync(() => void server.close())
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )

describe("names of downloads", () => {
  pure("are names of this directory, and none that a shell reads at its start", () => {
    const cases = [
      ["report.pdf", "report.pdf"],
      ["Grüße 日本.txt", "Grüße 日本.txt"],
      ["../../etc/passwd", "passwd"],
      [".bashrc", "_bashrc"],
      ["-rf", "_rf"],
      ["a\u202efdp.exe", "a_fdp.exe"],
      ["..", "file"]
    ] as const
    for (const [sent, kept] of cases) {
      assert.strictEqual(nameIn(contentDisposition("attachment", sent)), kept, sent)
      assert.strictEqual(nameIn(`inline; filename*=UTF-8''${encodeURIComponent(sent)}`), kept, sent)
    }
    assert.strictEqual(nameIn(""), "download")
    assert.strictEqual(nameIn('attachment; filename="a\\"b.txt"'), "a_b.txt")
    assert.strictEqual(nameIn("attachment; filename*=UTF-8''%zz"), "%zz")
  })
})

layer(TestServer.shared, live)("a download of the command line", (it) => {
  it.effect("comes over connections that are cut, piece by piece, with its hash and its time", () =>
    Effect.gen(function* () {
      const { makeUser, port } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(6 * mebibyte)
      const file = yield* uploaded(["long.bin", bytes], { modifiedAt: "2026-05-04T03:02:01Z" }, { key })
      const random = seededRandom(20_261_123)
      const proxy = yield* cuttingProxy(port, () => Math.floor(random() * mebibyte) + 2_000)
      const here = yield* localDirectory
      const address = {
        url: `${proxy.url}/api/files/${file.fileId}`,
        headers: { authorization: `Bearer ${key}` }
      }
      const path = join(here, "long.bin")
      yield* fetchTo(yield* ByteClient.make, address, path)
      assert.strictEqual(sha256Of(yield* Effect.promise(() => readFile(path))), sha256Of(bytes))
      assert.strictEqual(
        (yield* Effect.promise(() => stat(path))).mtime.toISOString(),
        "2026-05-04T03:02:01.000Z"
      )
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(here)), ["long.bin"])
      assert.isAbove(proxy.connections(), 6)
      // Nothing comes twice but what was lost in flight.
      assert.isBelow(proxy.gotBytes(), bytes.length + proxy.connections() * 256 * 1024)
    }).pipe(Effect.scoped)
  )

  it.effect("goes on with the part of an earlier run, unless the file has become another one", () =>
    Effect.gen(function* () {
      const { makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(mebibyte)
      const file = yield* uploaded(["a.bin", bytes], {}, { key })
      const here = yield* localDirectory
      const path = join(here, "a.bin")
      const client = yield* ByteClient.make
      const address = {
        url: `${url}/api/files/${file.versionGroupId}`,
        headers: { authorization: `Bearer ${key}` }
      }
      const leave = (some: Uint8Array, etag: string) =>
        Effect.promise(async () => {
          await writeFile(`${path}.part`, some)
          await writeFile(`${path}.part.json`, JSON.stringify({ etag }))
        })
      yield* leave(bytes.subarray(0, 700_000), `"${file.fileHash}"`)
      assert.strictEqual((yield* fetchTo(client, address, path)).resumedAt, 700_000)
      assert.strictEqual(sha256Of(yield* Effect.promise(() => readFile(path))), file.fileHash)

      // A part with all bytes needs none; of another version it is thrown away.
      yield* leave(bytes, `"${file.fileHash}"`)
      assert.strictEqual((yield* fetchTo(client, address, path, true)).resumedAt, bytes.length)
      const next = yield* uploaded(["a.bin", randomBytes(1_000)], {}, { key })
      yield* leave(bytes.subarray(0, 700_000), `"${file.fileHash}"`)
      assert.strictEqual((yield* fetchTo(client, address, path, true)).resumedAt, 0)
      assert.strictEqual(sha256Of(yield* Effect.promise(() => readFile(path))), next.fileHash)

      // Empty files come too.
      const empty = yield* uploaded(["empty", ""], {}, { key })
      const into = join(here, "empty")
      yield* fetchTo(client, { ...address, url: `${url}/api/files/${empty.fileId}` }, into)
      assert.strictEqual((yield* Effect.promise(() => stat(into))).size, 0)
    }).pipe(Effect.scoped)
  )

  it.effect("keeps nothing of bytes with another hash, and replaces no file that is there", () =>
    Effect.gen(function* () {
      const { makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(10_000)
      const file = yield* uploaded(["a.bin", bytes], {}, { key })
      const here = yield* localDirectory
      const path = join(here, "a.bin")
      const client = yield* ByteClient.make
      const address = { url: `${url}/api/files/${file.fileId}`, headers: { authorization: `Bearer ${key}` } }
      yield* Effect.promise(async () => {
        await writeFile(`${path}.part`, Buffer.alloc(5_000))
        await writeFile(`${path}.part.json`, JSON.stringify({ etag: `"${file.fileHash}"` }))
      })
      assert.include(yield* refusalOf(fetchTo(client, address, path)), "another SHA-256")
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(here)), [])

      yield* Effect.promise(() => writeFile(path, "mine"))
      assert.include(yield* refusalOf(fetchTo(client, address, path)), "is there already")
      assert.strictEqual(yield* Effect.promise(() => readFile(path, "utf8")), "mine")
      yield* fetchTo(client, address, path, true)
      assert.strictEqual(sha256Of(yield* Effect.promise(() => readFile(path))), file.fileHash)
    }).pipe(Effect.scoped)
  )

  it.effect("counts one use of a capped link, over however many connections and runs it comes", () =>
    Effect.gen(function* () {
      const { ask, makeUser, port } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(3 * mebibyte)
      const {
        link: { token }
      } = yield* shared(key, { singleUse: true, password: "Schlüssel" }, bytes, "once.bin")
      const proxy = yield* cuttingProxy(port, (connection) => 40_000 + connection * 200_000)
      const here = yield* localDirectory
      const client = yield* ByteClient.make
      const url = `${proxy.url}/direct/${token}`
      assert.include(
        yield* refusalOf(Effect.promise(() => lookAt(client, { url, headers: {} }, { signal: never }))),
        "KeyRefused"
      )
      const headers = { "x-share-password": Buffer.from("Schlüssel").toString("latin1") }
      const { remote } = yield* fetchTo(client, { url, headers }, join(here, "once.bin"))
      assert.deepInclude(remote, { name: "once.bin", sha256: sha256Of(bytes), sizeBytes: bytes.length })
      assert.strictEqual(
        sha256Of(yield* Effect.promise(() => readFile(join(here, "once.bin")))),
        sha256Of(bytes)
      )
      assert.isAbove(proxy.connections(), 4)
      const link = yield* ask("GET", `/api/share-links/${token}`, { key })
      assert.deepInclude(link.json, { uses: 1 })

      // The use is open: a run after one that was killed goes on with it.
      yield* Effect.promise(async () => {
        await writeFile(join(here, "again.part"), bytes.subarray(0, 2 * mebibyte))
        await writeFile(join(here, "again.part.json"), JSON.stringify({ etag: remote.etag }))
      })
      const again = yield* fetchTo(client, { url, headers }, join(here, "again"))
      assert.strictEqual(again.resumedAt, 2 * mebibyte)
      const after = yield* ask("GET", `/api/share-links/${token}`, { key })
      assert.deepInclude(after.json, { uses: 1 })
    }).pipe(Effect.scoped)
  )

  it.effect("comes under a name as long as there may be", () =>
    Effect.gen(function* () {
      const { makeUser, port, url } = yield* TestServer
      const { key } = yield* makeUser()
      const bytes = randomBytes(mebibyte)
      const file = yield* uploaded(["a.bin", bytes], {}, { key })
      const here = yield* localDirectory
      const client = yield* ByteClient.make
      const address = (at: string) => ({
        url: `${at}/api/files/${file.fileId}`,
        headers: { authorization: `Bearer ${key}` }
      })
      const proxy = yield* cuttingProxy(port, () => 600_000)
      for (const name of ["x".repeat(245), "x".repeat(246), `${"ü".repeat(125)}.tar`, "日".repeat(85)]) {
        yield* fetchTo(client, address(proxy.url), join(here, name))
        assert.deepStrictEqual(yield* Effect.promise(() => readdir(here)), [name])
        yield* Effect.promise(() => rm(join(here, name)))
      }
      // Two names that are the same at their beginning have parts of their own.
      const [one, other] = [join(here, `${"x".repeat(254)}1`), join(here, `${"x".repeat(254)}2`)]
      const open = (path: string) =>
        Effect.promise(async () => {
          const remote = await lookAt(client, address(url), { signal: never })
          const sink = await PartFile.open(path, remote, false)
          await sink.write(Buffer.from(path))
          await sink.close()
        })
      yield* open(one)
      yield* open(other)
      assert.lengthOf(yield* Effect.promise(() => readdir(here)), 4)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "touches no part that no run of it has made, and takes the last step of one that was killed there",
    () =>
      Effect.gen(function* () {
        const { makeUser, url } = yield* TestServer
        const { key } = yield* makeUser()
        const bytes = randomBytes(10_000)
        const file = yield* uploaded(["a.bin", bytes], {}, { key })
        const here = yield* localDirectory
        const path = join(here, "a.bin")
        const client = yield* ByteClient.make
        const address = {
          url: `${url}/api/files/${file.fileId}`,
          headers: { authorization: `Bearer ${key}` }
        }
        yield* Effect.promise(() => writeFile(`${path}.part`, "mine"))
        assert.include(yield* refusalOf(fetchTo(client, address, path)), "a.bin.part is there already")
        assert.strictEqual(yield* Effect.promise(() => readFile(`${path}.part`, "utf8")), "mine")
        assert.deepStrictEqual(yield* Effect.promise(() => readdir(here)), ["a.bin.part"])
        // A file that was finished has two names for a moment: to write to the one would change the other.
        yield* Effect.promise(async () => {
          await writeFile(path, "finished before")
          await rm(`${path}.part`)
          await link(path, `${path}.part`)
          await writeFile(`${path}.part.json`, JSON.stringify({ etag: '"of another one"' }))
          await rename(path, join(here, "kept"))
        })
        yield* fetchTo(client, address, path)
        assert.strictEqual(sha256Of(yield* Effect.promise(() => readFile(path))), file.fileHash)
        assert.strictEqual(
          yield* Effect.promise(() => readFile(join(here, "kept"), "utf8")),
          "finished before"
        )
        assert.deepStrictEqual(yield* Effect.promise(() => readdir(here)), ["a.bin", "kept"])
      }).pipe(Effect.scoped)
  )

  it.effect("follows no redirect, which would take the key elsewhere", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const url = yield* servedBy((request, response) => {
        asked.push(`${request.method} ${request.url}`)
        response.writeHead(302, { location: "/elsewhere" }).end()
      })
      const client = yield* ByteClient.make
      const address = { url: `${url}/api/files/fg_1`, headers: { authorization: "Bearer sk_1" } }
      const looked = Effect.promise(() => lookAt(client, address, { signal: never }))
      assert.include(yield* refusalOf(looked), "The server answered 302")
      assert.deepStrictEqual(asked, ["HEAD /api/files/fg_1"])
    }).pipe(Effect.scoped)
  )
})
