import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import type { OpenBlobFile } from "#src/infra/blobs/BlobFiles.ts"
import { openNew } from "#src/infra/blobs/BlobStore.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const

/** A disk that is full for uploads that mention it. */
const fullDisk = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" })
const open: OpenBlobFile = async (path, flags) => {
  const file = await openNew(path, flags)
  return {
    writeFile: async (chunk) => {
      if (Buffer.from(chunk).includes("fill the disk")) throw fullDisk
      await file.writeFile(chunk)
    },
    truncate: (bytes) => file.truncate(bytes),
    datasync: () => file.datasync(),
    close: () => file.close()
  }
}

/** Files under DATA_DIR/blobs, unfinished ones included. */
const filesOnDisk = Effect.flatMap(TestStores, ({ dataDir }) =>
  Effect.promise(async () => {
    const entries = await readdir(join(dataDir, "blobs"), { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile() && entry.name !== "store").length
  })
)

const rows = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ n: number }>`SELECT count(*)::int AS n FROM files WHERE deleted_at IS NULL`,
    (_) => _[0]?.n
  )
)

const filed = (text: string, name = "file"): FormData => {
  const form = new FormData()
  form.set(name, new Blob([text]), "a.txt")
  return form
}

const boundary = "----signalbox"
const part = (name: string, text: string, filename?: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"` +
  `${filename === undefined ? "" : `; filename="${filename}"`}\r\n\r\n${text}\r\n`
const end = `--${boundary}--\r\n`
const multipart = { "content-type": `multipart/form-data; boundary=${boundary}` }

const limits = { blobCollectEveryMillis: 100, blobKeptMillis: 0 }

layer(TestServer.own({ limits }, { open }), live)("an upload", (it) => {
  it.effect("that is not one field `file` with a file is 400 naming `file`, and leaves nothing", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const before = [yield* filesOnDisk, yield* rows]
      const shapes: ReadonlyArray<readonly [string, string]> = [
        ["another name", part("document", "x", "a.txt") + end],
        ["text in the field", part("file", "x") + end],
        ["text before it", part("title", "x") + part("file", "x", "a.txt") + end],
        ["text after it", part("file", "x", "a.txt") + part("title", "x") + end],
        ["two files", part("file", "x", "a.txt") + part("file", "y", "b.txt") + end],
        ["no field", end],
        ["no end", part("file", "x", "a.txt")],
        ["cut in the file", part("file", "x", "a.txt").slice(0, -4)],
        ["cut in the head", part("file", "x", "a.txt").slice(0, 40)],
        ["no form", "hello"],
        ["nothing", ""]
      ]
      for (const [shape, body] of shapes) {
        const refused = yield* ask("POST", "/api/v1/files", { headers: multipart, body })
        assert.strictEqual(refused.status, 400, `${shape} ${JSON.stringify(refused.json)}`)
        assert.match(textOf(refused, "error"), /^file: /, shape)
      }
      assert.deepStrictEqual([yield* filesOnDisk, yield* rows], before)
    })
  )

  it.effect("of another Content-Type, or without a boundary, is 400 naming `file`", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      for (const type of [
        "application/json",
        "multipart/form-data",
        "multipart/mixed; boundary=x",
        "text/plain"
      ]) {
        const refused = yield* ask("POST", "/api/v1/files", {
          headers: { "content-type": type },
          body: part("file", "x", "a.txt") + end
        })
        assert.strictEqual(refused.status, 400, `${type} ${JSON.stringify(refused.json)}`)
        assert.match(textOf(refused, "error"), /^file: /, type)
      }
    })
  )

  it.effect("whose client goes away leaves nothing", () =>
    Effect.gen(function* () {
      const { adminKey, port } = yield* TestServer
      const before = yield* filesOnDisk
      const client = yield* Effect.promise(() => RawClient.open(port))
      yield* Effect.promise(() =>
        client.send(
          `POST /api/v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
            `Content-Type: ${multipart["content-type"]}\r\nContent-Length: 1000000\r\n\r\n` +
            part("file", "x".repeat(200_000), "a.txt").slice(0, -2)
        )
      )
      yield* eventually(
        "the upload has begun",
        Effect.map(filesOnDisk, (count) => count > before)
      )
      client.destroy()
      yield* eventually(
        "the upload is gone",
        Effect.map(filesOnDisk, (count) => count === before)
      )
    })
  )

  it.effect("may take longer than Postgres may, as long as it goes on", () =>
    Effect.gen(function* () {
      const { adminKey, port } = yield* TestServer
      const body = part("file", "slowly".repeat(4_000), "slow.txt") + end
      const client = yield* Effect.promise(() => RawClient.open(port))
      yield* Effect.promise(() =>
        client.send(
          `POST /api/v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
            `Content-Type: ${multipart["content-type"]}\r\nContent-Length: ${body.length}\r\n\r\n`
        )
      )
      // A statement may take 10 s; this body takes 12.
      for (let sent = 0, step = Math.ceil(body.length / 12); sent < body.length; sent += step) {
        yield* Effect.promise(() => client.send(body.slice(sent, sent + step)))
        yield* Effect.sleep(1_000)
      }
      const answer = yield* Effect.promise(() => client.until((text) => text.includes("slow.txt")))
      assert.strictEqual(statusOf(answer), 200)
      client.destroy()
    })
  )

  it.effect("onto a full disk is 507, leaves nothing, and works again when there is room", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const before = [yield* filesOnDisk, yield* rows]
      const refused = yield* ask("POST", "/api/v1/files", { body: filed("fill the disk") })
      assert.deepStrictEqual(
        [refused.status, refused.json],
        [507, { error: "The disk is full; the file was not stored" }]
      )
      assert.deepStrictEqual([yield* filesOnDisk, yield* rows], before)
      assert.strictEqual((yield* ask("POST", "/api/v1/files", { body: filed("room") })).status, 200)
    })
  )

  it.effect("whose row cannot be written is no file: 500, and its bytes go with the next collection", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const sql = yield* SqlClient
      const before = yield* filesOnDisk
      yield* sql`ALTER TABLE files RENAME TO files_away`
      const refused = yield* ask("POST", "/api/v1/files", { body: filed("x") })
      yield* sql`ALTER TABLE files_away RENAME TO files`
      assert.strictEqual(refused.status, 500)
      yield* eventually(
        "its bytes are gone",
        Effect.map(filesOnDisk, (count) => count === before)
      )
    })
  )
})
