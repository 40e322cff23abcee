import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { beforeAll } from "vitest"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { type Caller, makeCaller } from "#test/llm/Caller.ts"
import { errorOf, metadataOf, told, TusClient } from "./TusClient.ts"

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

interface Item {
  readonly fileId: string
  readonly versionGroupId: string
  readonly directoryId: string
  readonly [name: string]: unknown
}

let server: Reachable
let caller: Caller
let tus: TusClient

beforeAll(async () => {
  server = (await sharedServer()).server
  caller = await makeCaller(server, 0)
  tus = new TusClient(server, caller.key)
})

/** The file that an upload of this text has become. */
const made = async (text: string, fields: Readonly<Record<string, string>>): Promise<Item> => {
  const path = await tus.begin(Buffer.byteLength(text), fields)
  const last = await tus.patch(path, 0, text)
  assert.strictEqual(last.status, 204, errorOf(last))
  const { body } = await tus.ask("GET", path)
  return (body as { file: Item }).file
}

describe("the file of a resumable upload", () => {
  it("has the items of other uploads, in uploads where nothing else is said", async () => {
    const item = await made("abc", { filename: "Ünïcödé 日本.txt", filetype: "text/plain" })
    assert.deepInclude(item, {
      name: "Ünïcödé 日本.txt",
      size: 3,
      directUrl: null,
      version: 1,
      fileHash: sha256("abc"),
      mimeType: "text/plain",
      isEncrypted: false
    })
    assert.match(item.fileId, /^fv_/)
    assert.match(item.versionGroupId, /^fg_/)
    assert.match(item.directoryId, /^dir_/)
  })

  it("goes below dir or directoryId by its path, whose directories are made", async () => {
    const one = await made("1", { path: "a/b/1.txt", dir: "places" })
    const two = await made("2", { path: "2.txt", directoryId: one.directoryId })
    assert.strictEqual(two.directoryId, one.directoryId)
    const three = await made("3", { path: "c/3.txt", directoryId: one.directoryId })
    assert.notStrictEqual(three.directoryId, one.directoryId)
    const both = {
      "upload-length": "1",
      "upload-metadata": metadataOf({ filename: "x", dir: "a", directoryId: "b" })
    }
    assert.strictEqual((await tus.post(both)).status, 400)
    const none = {
      ...both,
      "upload-metadata": metadataOf({ filename: "x", directoryId: `dir_${"0".repeat(22)}` })
    }
    assert.strictEqual((await tus.post(none)).status, 404)
  })

  it("is the next version of a file of its name, also where both were begun before", async () => {
    const paths = [await tus.begin(1, { filename: "twice" }), await tus.begin(1, { filename: "twice" })]
    await Promise.all(paths.map((path, index) => tus.patch(path, 0, String(index))))
    const versions = await Promise.all(
      paths.map(async (path) => ((await tus.ask("GET", path)).body as { file: Item }).file["version"])
    )
    assert.sameMembers(versions, [1, 2])
  })

  it("is checked by sha256: 422 with other bytes, which are gone then", async () => {
    const path = await tus.begin(3, { filename: "checked", sha256: sha256("abc").toUpperCase() })
    const answer = await tus.patch(path, 0, "abX")
    assert.deepStrictEqual(
      [answer.status, errorOf(answer)],
      [422, `sha256: the bytes have the hash ${sha256("abX")}`]
    )
    assert.strictEqual((await tus.head(path)).status, 404)
    assert.strictEqual((await made("abc", { filename: "checked", sha256: sha256("abc") }))["version"], 1)
  })

  it("is 409 with the current version where ifVersion is another one, and the upload stays", async () => {
    const first = await made("1", { filename: "guarded", ifVersion: "none" })
    const path = await tus.begin(1, { filename: "guarded", ifVersion: "none" })
    for (const answer of [await tus.patch(path, 0, "2"), await tus.patch(path, 1, "")]) {
      assert.strictEqual(answer.status, 409)
      assert.include(errorOf(answer), first.fileId)
    }
    assert.strictEqual((await tus.head(path)).status, 409)
    await tus.ask("DELETE", path)
    const next = await made("3", { filename: "guarded", ifVersion: first.fileId })
    assert.strictEqual(next["version"], 2)
  })

  it("keeps its own time, and bytes that the client has encrypted as they are", async () => {
    const fields = { filename: "sealed", modifiedAt: "2020-02-29T12:00:00+01:00", clientEncrypted: "true" }
    const item = await made("abc", { ...fields, encryptionKeyId: "ek_1" })
    assert.strictEqual(item["isEncrypted"], true)
    const answer = await ask(server, "HEAD", `/api/files/${item.fileId}`, { key: caller.key })
    assert.strictEqual(answer.headers.get("last-modified"), "Sat, 29 Feb 2020 11:00:00 GMT")
    assert.strictEqual(answer.headers.get("x-encryption-key-id"), "ek_1")
  })

  it("has a link where one is asked for, in the answer to its last byte alone", async () => {
    const path = await tus.begin(3, { filename: "linked", link: "1" })
    const last = await tus.patch(path, 0, "abc")
    const [url = null] = told(last, "upload-direct-url")
    assert.match(url ?? "", /^http:\/\/[^/]+\/direct\/[0-9A-Za-z]{22}$/)
    assert.deepStrictEqual(told(await tus.head(path), "upload-direct-url"), [null])
    assert.strictEqual(
      (await tus.whole("abc", { filename: "unlinked" })).headers.get("upload-direct-url"),
      null
    )
  })
})

describe("a key for resumable uploads", () => {
  const scoped = async (...scopes: ReadonlyArray<string>): Promise<TusClient> =>
    new TusClient(server, await caller.makeKey({ kind: "account", scopes }))

  it("writes where its scopes reach: by name 403 elsewhere, by id 404", async () => {
    const writer = await scoped("write:open")
    const path = await writer.begin(3, { filename: "a", dir: "open" })
    assert.strictEqual((await writer.patch(path, 0, "abc")).status, 204)
    const named = { "upload-length": "3", "upload-metadata": metadataOf({ filename: "a", dir: "closed" }) }
    assert.strictEqual((await writer.post(named)).status, 403)
    const usual = { "upload-length": "3", "upload-metadata": metadataOf({ filename: "a" }) }
    assert.strictEqual((await writer.post(usual)).status, 403)
    const { directoryId } = await made("x", { filename: "a", dir: "closed" })
    const byId = { ...usual, "upload-metadata": metadataOf({ filename: "a", directoryId }) }
    assert.strictEqual((await writer.post(byId)).status, 404)
    const others = await tus.begin(3, { filename: "a", dir: "closed" })
    assert.strictEqual((await writer.head(others)).status, 404)
    assert.strictEqual((await writer.patch(others, 0, "abc")).status, 404)
    const { body } = await writer.ask("GET", "/api/uploads")
    assert.deepStrictEqual(body, { uploads: [] })
  })

  it("goes on with what another key of the same user began", async () => {
    const writer = await scoped("write")
    const path = await tus.begin(6, { filename: "shared" })
    await tus.patch(path, 0, "abc")
    assert.strictEqual((await writer.patch(path, 3, "def")).status, 204)
  })

  it("is 403 with the scope read, and 401 where it is none", async () => {
    const reader = await scoped("read")
    const path = await tus.begin(3, { filename: "a" })
    for (const [client, status] of [
      [reader, 403],
      [new TusClient(server, "sk_none"), 401]
    ] as const) {
      const usual = { "upload-length": "3", "upload-metadata": metadataOf({ filename: "a" }) }
      assert.strictEqual((await client.post(usual)).status, status)
      assert.strictEqual((await client.head(path)).status, status)
      assert.strictEqual((await client.patch(path, 0, "abc")).status, status)
      assert.strictEqual((await client.ask("DELETE", path)).status, status)
      assert.strictEqual((await client.ask("GET", path)).status, status)
      assert.strictEqual((await client.ask("GET", "/api/uploads")).status, status)
    }
  })

  it("pays for beginning and reading an upload, not for its parts", async () => {
    const metered = new TusClient(server, await caller.makeKey({ kind: "account" }))
    const path = await metered.begin(3, { filename: "metered" })
    const remaining = async () => Number((await metered.ask("GET", path)).headers.get("ratelimit-remaining"))
    const before = await remaining()
    for (const answer of [
      await metered.head(path),
      await metered.patch(path, 0, "a"),
      await metered.patch(path, 9, "a")
    ])
      assert.strictEqual(answer.headers.get("ratelimit-remaining"), null)
    assert.strictEqual(await remaining(), before - 1)
  })

  it("may be a session's cookie, but not from a foreign page", async () => {
    const opened = await ask(server, "POST", "/api/session", { key: caller.key })
    const cookie = opened.headers.getSetCookie()[0]?.split(";", 1)[0] ?? ""
    const headers = {
      cookie,
      "tus-resumable": "1.0.0",
      "upload-length": "0",
      "upload-metadata": metadataOf({ filename: "c" })
    }
    const own = await ask(server, "POST", "/api/uploads", { key: "", headers })
    assert.strictEqual(own.status, 201)
    const foreign = { ...headers, "sec-fetch-site": "cross-site" }
    assert.strictEqual((await ask(server, "POST", "/api/uploads", { key: "", headers: foreign })).status, 403)
    assert.strictEqual(textAt(opened, "user", "id"), caller.userId)
  })
})
