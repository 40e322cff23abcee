import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { createHash } from "node:crypto"
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { RawClient, statusOf } from "#test/front/RawClient.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestServer, textOf } from "#test/harness/TestServer.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { blobFiles, uploadFiles } from "#test/infra/blobs/StoredBlobs.ts"

const live = { excludeTestServices: true } as const

const formOf = (bytes: Uint8Array<ArrayBuffer>): FormData => {
  const form = new FormData()
  form.set("file", new Blob([bytes]), "a.bin")
  return form
}

const upload = (bytes: Uint8Array<ArrayBuffer>) =>
  Effect.flatMap(TestServer, ({ ask }) => ask("POST", "/api/v1/files", { body: formOf(bytes) }))

const get = (path: string) => Effect.flatMap(TestServer, ({ ask }) => ask("GET", path))

const directory = Effect.map(TestStores, ({ dataDir }) => join(dataDir, "blobs"))

const pathOf = (bytes: Uint8Array) =>
  Effect.map(directory, (root) => {
    const sha256 = createHash("sha256").update(bytes).digest("hex")
    return join(root, sha256.slice(0, 2), sha256.slice(2, 4), sha256)
  })

const blobsState = Effect.flatMap(TestServer, ({ ask }) =>
  Effect.map(ask("GET", "/readyz", { key: "" }), ({ json, status }) => {
    const { components } = json as { components: Record<string, { status: string; detail?: string }> }
    const { detail, status: state } = components["blobs"] ?? { status: "none" }
    return [status, state, detail ?? ""] as const
  })
)

const metric = (name: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", "/metrics", { key: "" }), ({ bytes }) =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(Buffer.from(bytes).toString())?.[1])
    )
  )

const damaged503 = {
  error:
    "The file's bytes are damaged or missing on the server's disk; it can be read again once they were uploaded again"
}

/** Each of its own content; the long ones go out of the file, the short ones are read whole. */
const bytesOf = (name: string, size: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.from(`${name} `.repeat(Math.ceil(size / (name.length + 1))).slice(0, size)))

const damages = [
  ["cut", (path: string) => truncateSync(path, 10)],
  ["grown", (path: string) => writeFileSync(path, "more", { flag: "a" })],
  ["deleted", (path: string) => rmSync(path)],
  [
    "flipped",
    (path: string) => {
      const bytes = readFileSync(path)
      bytes[5] = (bytes[5] ?? 0) ^ 1
      writeFileSync(path, bytes)
    }
  ]
] as const

const quickScrub = { blobScrubEveryMillis: 100, blobCheckMillis: 0, blobCountsMillis: 100 }

layer(TestServer.own({ limits: { blobCountsMillis: 100 } }), live)("bytes damaged behind our back", (it) => {
  it.effect("are 503 to their reader, told and counted, and well again when they are uploaded again", () =>
    Effect.gen(function* () {
      const { logged } = yield* TestServer
      assert.deepStrictEqual((yield* blobsState).slice(0, 2), [200, "up"])
      let count = 0
      for (const size of [1_000, 100_000]) {
        for (const [name, damage] of damages) {
          // The flipped bytes of a long file are found by the scrub alone.
          if (size > 16_384 && name === "flipped") continue
          const bytes = bytesOf(`${name} ${size}`, size)
          const path = textOf(yield* upload(bytes), "url")
          const file = yield* pathOf(bytes)
          damage(file)
          for (let time = 0; time < 2; time++) {
            const refused = yield* get(path)
            assert.deepStrictEqual([refused.status, refused.json], [503, damaged503], `${name} ${size}`)
          }
          count++
          assert.deepStrictEqual((yield* blobsState).slice(0, 2), [200, "degraded"])
          assert.strictEqual(yield* metric("signalbox_blobs_damaged_total"), count)
          const lines = logged().filter((line) => line.includes("damaged or missing") && line.includes(file))
          assert.strictEqual(lines.length, 1, "one line in the log")
          const again = textOf(yield* upload(bytes), "url")
          for (const whole of [path, again]) {
            const read = yield* get(whole)
            assert.strictEqual(read.status, 200)
            assert.isTrue(Buffer.from(read.bytes).equals(bytes))
          }
          assert.deepStrictEqual((yield* blobsState).slice(0, 2), [200, "up"])
        }
      }
      yield* eventually(
        "blobs and their bytes are counted",
        Effect.map(
          Effect.all([metric("signalbox_blobs"), metric("signalbox_blob_bytes")]),
          ([blobs, bytes]) => blobs === count && bytes > 100_000
        )
      )
    })
  )
})

layer(TestServer.own({ limits: quickScrub }), live)("a scrub", (it) => {
  it.effect("finds flipped bytes that no reader has met, and their readers are refused from then on", () =>
    Effect.gen(function* () {
      const bytes = bytesOf("flipped by the disk", 100_000)
      const path = textOf(yield* upload(bytes), "url")
      damages[3][1](yield* pathOf(bytes))
      yield* eventually(
        "it is found",
        Effect.map(blobsState, ([, state, detail]) => state === "degraded" && detail.startsWith("1 blobs"))
      )
      const refused = yield* get(path)
      assert.deepStrictEqual([refused.status, refused.json], [503, damaged503])
      yield* eventually(
        "the gauge has it",
        Effect.map(metric("signalbox_blobs_damaged"), (damaged) => damaged === 1)
      )
    })
  )

  it.effect("takes a directory that is not there for a disk that is away, and no blob for damaged", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const root = yield* directory
      const id = readFileSync(join(root, "store"), "utf8")
      const before = yield* metric("signalbox_blobs_damaged_total")
      rmSync(join(root, "store"))
      const [status, state, detail] = yield* blobsState
      assert.deepStrictEqual([status, state], [200, "degraded"])
      assert.match(detail, /is its disk mounted\?/)
      yield* Effect.sleep(500)
      writeFileSync(join(root, "store"), id)
      assert.strictEqual(yield* metric("signalbox_blobs_damaged_total"), before)
      assert.strictEqual((yield* ask("GET", "/api/v1/health")).status, 200)
    })
  )
})

const postgres = postgresWire()

const limits = {
  blobCollectEveryMillis: 200,
  blobKeptMillis: 0,
  putKeptMillis: 3_000,
  // Sweeps go on soon after the outage.
  jobPollMillis: 200,
  jobLeaseMillis: 1_000,
  jobRetryMaxMillis: 1_000
}

layer(TestServer.own({ limits }, postgres), live)("Postgres going away amid an upload", (it) => {
  const multipart =
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n' + "x".repeat(100_000)
  const end = "\r\n--b--\r\n"

  it.effect("is 503, and its bytes and its reservation go", () =>
    Effect.gen(function* () {
      const { adminKey, ask, port } = yield* TestServer
      const root = yield* directory
      const client = yield* Effect.promise(() => RawClient.open(port))
      yield* Effect.promise(() =>
        client.send(
          `POST /api/v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
            `Content-Type: multipart/form-data; boundary=b\r\n` +
            `Content-Length: ${multipart.length + end.length}\r\n\r\n${multipart}`
        )
      )
      yield* eventually(
        "the upload has begun",
        Effect.sync(() => uploadFiles(root).length === 1)
      )
      postgres.breakWire("refuse")
      yield* Effect.promise(() => client.send(end))
      const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
      assert.strictEqual(statusOf(answer), 503)
      assert.match(answer, /retry-after: \d+/i)
      client.destroy()
      assert.deepStrictEqual(uploadFiles(root), [])
      postgres.mend()
      const sql = yield* SqlClient
      yield* eventually(
        "Postgres is back, and nothing is left of it",
        Effect.map(
          Effect.all([
            sql`SELECT 1 FROM blob_uploads UNION ALL SELECT 1 FROM blobs`,
            Effect.sync(() => blobFiles(root))
          ]),
          ([rows, files]) => rows.length === 0 && files.length === 0
        )
      )
      assert.strictEqual((yield* ask("GET", "/readyz", { key: "" })).status, 200)
    })
  )

  it.effect("or not: an upload that outlives its reservation, which is renewed, is stored", () =>
    Effect.gen(function* () {
      const { adminKey, port } = yield* TestServer
      const client = yield* Effect.promise(() => RawClient.open(port))
      yield* Effect.promise(() =>
        client.send(
          `POST /api/v1/files HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${adminKey}\r\n` +
            `Content-Type: multipart/form-data; boundary=b\r\n` +
            `Content-Length: ${multipart.length + end.length}\r\n\r\n${multipart.slice(0, -8_000)}`
        )
      )
      // It lasts for two reservations.
      for (let left = 8_000; left > 0; left -= 1_000) {
        yield* Effect.promise(() => client.send("x".repeat(1_000)))
        yield* Effect.sleep(800)
      }
      yield* Effect.promise(() => client.send(end))
      const answer = yield* Effect.promise(() => client.until((heard) => heard.endsWith("}")))
      assert.strictEqual(statusOf(answer), 200)
      client.destroy()
    })
  )
})
