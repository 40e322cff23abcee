import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, afterAll, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TusClient } from "#test/files/uploads/TusClient.ts"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { SmallDisk, smallDisk } from "#test/harness/SmallDisk.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { blobFiles, uploadFiles } from "#test/infra/blobs/StoredBlobs.ts"

const mib = 1024 * 1024

const full507 = { error: "The disk is full; the file was not stored" }

const upload = (size: number) =>
  Effect.flatMap(TestServer, ({ ask }) => {
    const form = new FormData()
    form.set("file", new Blob([new Uint8Array(size).fill(size % 251)]), "a.bin")
    return ask("POST", "/api/v1/files", { body: form })
  })

const rows = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ n: number }>`SELECT (SELECT count(*) FROM files) + (SELECT count(*) FROM blob_uploads)
      + (SELECT count(*) FROM blobs) AS n`,
    ([row]) => Number(row?.n)
  )
)

describeWith(smallDisk, "blobs on a disk of 16 MiB", () => {
  const home = mkdtempSync(join(tmpdir(), "signalbox-"))
  const disk = new SmallDisk(join(home, "blobs"), 16)
  afterAll(() => {
    disk.remove()
    rmSync(home, { recursive: true })
  })
  const settings = { blobsDirectory: disk.directory, filesMinFreeBytes: mib }

  layer(TestServer.own(settings), { excludeTestServices: true })("that is full", (it) => {
    it.effect(
      "is 507 before it has less than is kept free, with nothing kept, and well with room again",
      () =>
        Effect.gen(function* () {
          assert.strictEqual((yield* upload(2 * mib)).status, 200)
          const before = [yield* rows, blobFiles(disk.directory).length]
          yield* Effect.promise(() => disk.fill(2 * mib))
          for (const size of [1.5 * mib, 20 * mib]) {
            const refused = yield* upload(size)
            assert.deepStrictEqual([refused.status, refused.json], [507, full507])
          }
          assert.deepStrictEqual([yield* rows, blobFiles(disk.directory).length], before)
          assert.deepStrictEqual(uploadFiles(disk.directory), [])
          // A small one leaves what has to be free.
          assert.strictEqual((yield* upload(1_000)).status, 200)
          yield* Effect.promise(() => disk.free())
          assert.strictEqual((yield* upload(1.5 * mib)).status, 200)
        })
    )

    it.effect("amid an upload is 507, with nothing half-written kept", () =>
      Effect.gen(function* () {
        const { adminKey, ask, port } = yield* TestServer
        const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        const end = "\r\n--b--\r\n"
        const size = 4 * mib
        const before = [yield* rows, blobFiles(disk.directory).length]
        const client = yield* Effect.promise(() => RawClient.open(port))
        yield* Effect.promise(() =>
          client.send(
            `POST /api/v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
              `Content-Type: multipart/form-data; boundary=b\r\n` +
              `Content-Length: ${head.length + size + end.length}\r\n\r\n${head}${"x".repeat(mib)}`
          )
        )
        yield* eventually(
          "the upload has begun",
          Effect.sync(() => uploadFiles(disk.directory).length === 1)
        )
        yield* Effect.promise(() => disk.fill())
        yield* Effect.promise(() => client.send("x".repeat(size - mib) + end))
        const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
        assert.strictEqual(statusOf(answer), 507)
        assert.isTrue(answer.endsWith(JSON.stringify(full507)))
        client.destroy()
        assert.deepStrictEqual([yield* rows, blobFiles(disk.directory).length], before)
        assert.deepStrictEqual(uploadFiles(disk.directory), [])
        const readable = yield* ask("GET", "/api/v1/health")
        assert.strictEqual(readable.status, 200)
        yield* Effect.promise(() => disk.free())
        assert.match(textOf(yield* upload(mib), "id"), /^fil_/)
      })
    )

    it.effect("amid a PATCH of a resumable upload is 507, and it goes on with room again", () =>
      Effect.gen(function* () {
        const { adminKey, port, server } = yield* TestServer
        const tus = new TusClient(server, adminKey)
        const text = randomBytes(2 * mib).toString("hex")
        const path = yield* Effect.promise(() => tus.begin(text.length, { filename: "a.txt" }))
        const client = yield* Effect.promise(() => RawClient.open(port))
        yield* Effect.promise(() =>
          client.send(
            `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\nTus-Resumable: 1.0.0\r\n` +
              `Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n` +
              `Content-Length: ${text.length}\r\n\r\n${text.slice(0, mib)}`
          )
        )
        const told = Effect.map(
          Effect.promise(() => tus.ask("GET", path)),
          ({ body }) => Number((body as { readonly offset: number }).offset)
        )
        yield* eventually(
          "some of it is on the disk",
          Effect.map(told, (offset) => offset > 0)
        )
        const before = yield* told
        yield* Effect.promise(() => disk.fill())
        yield* Effect.promise(() => client.send(text.slice(mib)))
        const answer = yield* Effect.promise(() => client.until((heard) => heard.includes("\r\n\r\n")))
        assert.strictEqual(statusOf(answer), 507, answer)
        client.destroy()
        yield* Effect.promise(async () => {
          const full = await tus.head(path)
          const offset = Number(full.headers.get("upload-offset"))
          assert.isAtLeast(offset, before)
          assert.strictEqual((await tus.patch(path, offset, text.slice(offset))).status, 507)
          await disk.free()
          const now = Number((await tus.head(path)).headers.get("upload-offset"))
          assert.isAtLeast(now, offset)
          const last = await tus.patch(path, now, text.slice(now))
          assert.strictEqual(last.status, 204)
          assert.strictEqual(await tus.read(last.headers.get("upload-file-id")), text)
        })
      })
    )
  })
})
