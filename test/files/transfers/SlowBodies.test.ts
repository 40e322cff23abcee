import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { begun, live } from "./TransferSteps.ts"
import { metadataOf } from "../uploads/TusClient.ts"

layer(TestServer.own({ limits: { slowBodyMillis: 300 } }), live)("an upload that stalls", (it) => {
  /** The answer to a request that has sent the beginning of its bytes, and no more. */
  const stalled = Effect.fnUntraced(function* (
    key: string,
    line: string,
    headers: ReadonlyArray<string>,
    some: string
  ) {
    const client = yield* begun(key, line, ["Content-Length: 1000000", ...headers])
    yield* Effect.promise(() => client.send(some))
    return yield* Effect.promise(() => client.until((heard) => heard.includes('"error"')))
  })

  it.effect("is 408: nothing of a form or a raw body is stored, of a resumable one what came is kept", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const part = '--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nabc'
      const form = yield* stalled(
        key,
        "POST /api/upload",
        ["Content-Type: multipart/form-data; boundary=x"],
        part
      )
      assert.match(form, /^HTTP\/1\.1 408 /)
      assert.match(yield* stalled(key, "PUT /api/upload/docs/a", [], "abc"), /^HTTP\/1\.1 408 /)
      const files = yield* ask("GET", "/api/files", { key })
      assert.deepStrictEqual(files.json, { files: [], cursor: null })

      const tus = { "tus-resumable": "1.0.0" }
      const made = yield* ask("POST", "/api/uploads", {
        key,
        headers: { ...tus, "upload-length": "1000000", "upload-metadata": metadataOf({ filename: "a" }) }
      })
      const path = made.headers.get("location") ?? ""
      const patch = yield* stalled(
        key,
        `PATCH ${path}`,
        ["Tus-Resumable: 1.0.0", "Upload-Offset: 0", "Content-Type: application/offset+octet-stream"],
        "abc"
      )
      assert.match(patch, /^HTTP\/1\.1 408 /)
      assert.include(patch, "what came is kept")
      const head = yield* ask("HEAD", path, { key, headers: tus })
      assert.strictEqual(head.headers.get("upload-offset"), "3")
    }).pipe(Effect.scoped)
  )
})
