import { createHash } from "node:crypto"
import { gunzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { chromiumPresent, sharedBrowser } from "#test/harness/Browser.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { ensured, treeLayer, written } from "../tree/TreeSteps.ts"

const served = treeLayer.pipe(Layer.provideMerge(TestServer.own()))

/** Runs in the page: unpacks an archive while it comes, and answers length and hash of the tar file. */
const unpacked = async ({ key, path }: { readonly key: string; readonly path: string }) => {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${key}` } })
  const tar = answer.body?.pipeThrough(new DecompressionStream("gzip"))
  const bytes = await new Response(tar).arrayBuffer()
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))
  const hex = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("")
  return { bytes: bytes.byteLength, hex, length: answer.headers.get("content-length") }
}

describeWith(chromiumPresent, "a browser", () => {
  layer(served, { excludeTestServices: true, timeout: "120 seconds" })((it) => {
    it.effect("unpacks an archive by itself", () =>
      Effect.gen(function* () {
        const { ask, makeUser, url } = yield* TestServer
        const { id, key } = yield* makeUser()
        const docs = yield* ensured(id, "docs")
        for (let n = 0; n < 20; n++) yield* written(docs, `日本 ${n}`, `${n}`.repeat(40_000))
        const path = `/api/download/${docs.id}`
        const { bytes } = yield* ask("GET", path, { key })
        const tar = gunzipSync(bytes)
        const seen = yield* Effect.promise(async () => {
          const context = await (await sharedBrowser()).newContext({ bypassCSP: true })
          const page = await context.newPage()
          await page.goto(`${url}/docs`)
          const read = await page.evaluate(unpacked, { key, path })
          await context.close()
          return read
        })
        assert.deepStrictEqual(seen, {
          bytes: tar.length,
          hex: createHash("sha256").update(tar).digest("hex"),
          length: String(bytes.length)
        })
      })
    )
  })
})
