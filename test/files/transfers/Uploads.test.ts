import { createHash } from "node:crypto"
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { type Form, formOf, item, items, live, sha256Of, upload } from "./TransferSteps.ts"

layer(TestServer.shared, live)("uploads of shared files", (it) => {
  it.effect("are answered with name, size, link, ids, version and hash, and read back byte for byte", () =>
    Effect.gen(function* () {
      const { ask, makeUser } = yield* TestServer
      const { key } = yield* makeUser()
      const form = formOf({ files: [["hello.txt", "hello", "text/plain"]] })
      const answer = yield* ask("POST", "/api/cli/upload", { key, body: form })
      assert.strictEqual(answer.status, 200)
      const [made] = items(answer)
      assert.deepStrictEqual(
        { ...made, directUrl: "", fileId: "", versionGroupId: "", directoryId: "" },
        {
          name: "hello.txt",
          size: 5,
          directUrl: "",
          fileId: "",
          versionGroupId: "",
          version: 1,
          fileHash: sha256Of("hello"),
          mimeType: "text/plain",
          directoryId: "",
          isEncrypted: false
        }
      )
      const read = yield* ask("GET", `/api/files/${made?.fileId}`, { key })
      assert.deepStrictEqual([read.status, Buffer.from(read.bytes).toString()], [200, "hello"])
    })
  )
})
