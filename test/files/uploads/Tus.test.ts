import { assert, describe, it } from "@effect/vitest"
import { beforeAll } from "vitest"
import { type Reachable } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { makeCaller } from "#test/llm/Caller.ts"
import { TusClient } from "./TusClient.ts"

describe("resumable uploads by tus", () => {
  let server: Reachable
  let tus: TusClient

  beforeAll(async () => {
    server = (await sharedServer()).server
    tus = new TusClient(server, (await makeCaller(server, 0)).key)
  })

  it("make a file of bytes that come in several requests", async () => {
    const path = await tus.begin(6, { filename: "a.txt", filetype: "text/plain" })
    const first = await tus.patch(path, 0, "abc")
    assert.strictEqual(first.status, 204)
    assert.strictEqual(first.headers.get("upload-offset"), "3")
    const head = await tus.head(path)
    assert.strictEqual(head.headers.get("upload-offset"), "3")
    const last = await tus.patch(path, 3, "def")
    assert.deepStrictEqual([last.status, last.headers.get("upload-offset")], [204, "6"])
    const { body } = await tus.ask("GET", path)
    console.log(body, [...last.headers])
  })
})
