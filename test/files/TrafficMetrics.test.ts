import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { direct, shared } from "./links/LinkSteps.ts"
import { get, live, series, upload, uploaded } from "./transfers/TransferSteps.ts"

const sentBytes = (protocol: string) => series("sent_bytes_total", { protocol })
const receivedBytes = (protocol: string) => series("received_bytes_total", { protocol })
const uploads = (protocol: string, outcome: string) => series("uploads_total", { protocol, outcome })

layer(TestServer.own({ limits: { uploadsCountedEveryMillis: 50 } }), live)(
  "/metrics of shared files",
  (it) => {
    it.effect("has bytes by protocol, outcomes of uploads, open ones and uses of links", () =>
      Effect.gen(function* () {
        const { adminKey: key, ask } = yield* TestServer
        const long = new Uint8Array(100_000)
        const file = yield* uploaded(["a.bin", long], {}, { key })
        assert.isAbove(yield* receivedBytes("form"), 100_000)
        assert.strictEqual(yield* uploads("form", "finished"), 1)
        assert.strictEqual((yield* upload([["a.bin", "x"]], { sha256: "0".repeat(64) }, { key })).status, 422)
        assert.strictEqual(yield* uploads("form", "refused"), 1)

        const put = yield* ask("PUT", "/api/upload/docs/b.bin", { key, body: long })
        assert.strictEqual(put.status, 201)
        assert.strictEqual(yield* receivedBytes("raw"), 100_000)
        assert.strictEqual(yield* uploads("raw", "finished"), 1)

        const tus = { "tus-resumable": "1.0.0", "content-type": "application/offset+octet-stream" }
        const begun = yield* ask("POST", "/api/uploads", {
          key,
          headers: { "tus-resumable": "1.0.0", "upload-length": "3000", "upload-metadata": "filename eA==" }
        })
        const path = begun.headers.get("location") ?? ""
        yield* eventually(
          "one is open",
          Effect.map(series("uploads_open"), (open) => open === 1)
        )
        for (const offset of [0, 1_000, 2_000]) {
          const body = new Uint8Array(1_000)
          yield* ask("PATCH", path, { key, headers: { ...tus, "upload-offset": String(offset) }, body })
        }
        assert.strictEqual(yield* receivedBytes("resumable"), 3_000)
        assert.strictEqual(yield* uploads("resumable", "finished"), 1)
        yield* eventually(
          "none is open",
          Effect.map(series("uploads_open"), (open) => open === 0)
        )

        yield* get(file.fileId, key, { range: "bytes=0-999" })
        yield* eventually(
          "the range",
          Effect.map(sentBytes("download"), (bytes) => bytes === 1_000)
        )
        yield* get(file.fileId, key, { "if-none-match": `"${file.fileHash}"` })
        const archive = yield* ask("GET", `/api/download/${file.directoryId}`, { key })
        yield* eventually(
          "the archive",
          Effect.map(sentBytes("archive"), (bytes) => bytes === archive.bytes.length)
        )
        assert.strictEqual(yield* sentBytes("download"), 1_000)

        const { link } = yield* shared(key, { maxRequests: 2 }, "the bytes")
        yield* direct(link.token, { method: "HEAD" })
        yield* direct(link.token)
        yield* direct(link.token, { headers: { range: "bytes=4-" } })
        yield* eventually(
          "the link",
          Effect.map(sentBytes("link"), (bytes) => bytes === 14)
        )
        assert.strictEqual(yield* series("link_uses_total"), 1)
      })
    )
  }
)
