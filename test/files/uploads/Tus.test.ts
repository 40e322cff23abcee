import { assert, describe, it } from "@effect/vitest"
import { beforeAll } from "vitest"
import { ask, type Reachable, textAt } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { makeCaller } from "#test/llm/Caller.ts"
import { digestOf, errorOf, metadataOf, told, TusClient } from "./TusClient.ts"

const aFile = { filename: "a.txt", filetype: "text/plain" }

let server: Reachable
let tus: TusClient

beforeAll(async () => {
  server = (await sharedServer()).server
  tus = new TusClient(server, (await makeCaller(server, 0)).key)
})

describe("a resumable upload by tus", () => {
  it("goes on at its offset, and is a file at its end", async () => {
    const path = await tus.begin(6, aFile)
    assert.match(path, /^\/api\/uploads\/upl_[0-9A-Za-z]{22}$/)
    const first = await tus.patch(path, 0, "abc")
    assert.deepStrictEqual(
      [first.status, ...told(first, "upload-offset", "upload-file-id")],
      [204, "3", null]
    )
    const head = await tus.head(path)
    assert.deepStrictEqual(
      [head.status, ...told(head, "upload-offset", "upload-length", "upload-metadata", "cache-control")],
      [200, "3", "6", metadataOf(aFile), "no-store"]
    )
    const last = await tus.patch(path, 3, "def")
    const [offset, fileId = null] = told(last, "upload-offset", "upload-file-id")
    assert.deepStrictEqual([last.status, offset], [204, "6"])
    assert.strictEqual(await tus.read(fileId), "abcdef")
    const after = await tus.head(path)
    assert.deepStrictEqual(told(after, "upload-offset", "upload-length", "upload-file-id"), [
      "6",
      "6",
      fileId
    ])
  })

  it("says on every answer which version it speaks, and 412 to another one", async () => {
    const path = await tus.begin(1, aFile)
    for (const answer of [
      await tus.head(path),
      await tus.patch(path, 9, "x"),
      await tus.head("/api/uploads/upl_x")
    ])
      assert.strictEqual(answer.headers.get("tus-resumable"), "1.0.0")
    for (const version of ["0.2.2", ""]) {
      const headers = { "tus-resumable": version, "upload-length": "1", "upload-metadata": metadataOf(aFile) }
      const answer = await ask(server, "POST", "/api/uploads", { key: tus.key, headers })
      assert.deepStrictEqual([answer.status, ...told(answer, "tus-version")], [412, "1.0.0"])
    }
  })

  it("has a browser open a connection for each request, as it sends those again that were cut on a used one", async () => {
    const answers = async (agent: string) => {
      const headers = { "user-agent": agent }
      const metadata = { "upload-length": "2", "upload-metadata": metadataOf(aFile) }
      const begun = await tus.ask("POST", "/api/uploads", { ...metadata, ...headers })
      const path = begun.headers.get("location") ?? ""
      const bytes = { "upload-offset": "0", "content-type": "application/offset+octet-stream" }
      const all = [begun, await tus.ask("PATCH", path, { ...bytes, ...headers }, "a")]
      // By itself fetch asks for the same behind HEAD.
      all.push(await tus.ask("DELETE", path, headers))
      return all.map((answer) => answer.headers.get("connection"))
    }
    const browser = await answers("Mozilla/5.0 (X11; Linux x86_64) Chrome/142.0.0.0")
    assert.deepStrictEqual(browser, ["close", "close", "close"])
    assert.notInclude(await answers("tus-js-client"), "close")
  })

  it("lets scripts of other origins read its headers", async () => {
    const path = await tus.begin(1, aFile)
    const headers = { "tus-resumable": "1.0.0", origin: "https://elsewhere.example" }
    const answer = await ask(server, "HEAD", path, { key: tus.key, headers })
    const names = (answer.headers.get("access-control-expose-headers") ?? "").toLowerCase().split(/, */)
    assert.includeMembers(names, [
      "location",
      "upload-offset",
      "upload-length",
      "upload-file-id",
      "tus-resumable"
    ])
  })

  it("is 409 at another offset, and nothing of it is kept", async () => {
    const path = await tus.begin(6, aFile)
    await tus.patch(path, 0, "abc")
    for (const offset of [0, 2, 4]) {
      const answer = await tus.patch(path, offset, "x")
      assert.deepStrictEqual([answer.status, errorOf(answer)], [409, "Upload-Offset: the upload has 3 bytes"])
    }
    assert.deepStrictEqual(told(await tus.head(path), "upload-offset"), ["3"])
  })

  it("is 415 with bytes of another type, 400 without an offset, 413 beyond its length", async () => {
    const path = await tus.begin(3, aFile)
    for (const type of ["application/octet-stream", "text/plain", ""])
      assert.strictEqual((await tus.patch(path, 0, "abc", { "content-type": type })).status, 415)
    const none = await tus.patch(path, 0, "abc", { "upload-offset": "" })
    assert.deepStrictEqual([none.status, errorOf(none)], [400, "Upload-Offset: is required"])
    assert.strictEqual((await tus.patch(path, 0, "abcd")).status, 413)
    assert.deepStrictEqual(told(await tus.head(path), "upload-offset"), ["0"])
  })

  it("is 404 for others, and by an id that is none", async () => {
    const other = new TusClient(server, (await makeCaller(server, 0)).key)
    const path = await tus.begin(3, aFile)
    for (const [client, address] of [
      [other, path],
      [tus, "/api/uploads/upl_x"],
      [tus, `/api/uploads/upl_${"0".repeat(22)}`],
      [tus, "/api/uploads/%00"]
    ] as const) {
      const statuses = [
        (await client.head(address)).status,
        (await client.patch(address, 0, "abc")).status,
        (await client.ask("DELETE", address)).status,
        (await client.ask("GET", address)).status
      ]
      assert.deepStrictEqual(statuses, [404, 404, 404, 404])
    }
  })
})

describe("the beginning of an upload", () => {
  it("takes the first bytes, and all of them", async () => {
    const headers = { "upload-length": "6", "upload-metadata": metadataOf(aFile) }
    const some = await tus.post(headers, "abc")
    assert.deepStrictEqual([some.status, ...told(some, "upload-offset")], [201, "3"])
    const rest = await tus.patch(some.headers.get("location") ?? "", 3, "def")
    assert.strictEqual(await tus.read(rest.headers.get("upload-file-id")), "abcdef")
    const all = await tus.post(headers, "uvwxyz")
    assert.deepStrictEqual([all.status, ...told(all, "upload-offset")], [201, "6"])
    assert.strictEqual(await tus.read(all.headers.get("upload-file-id")), "uvwxyz")
  })

  it("is the end of an empty file", async () => {
    const answer = await tus.post({ "upload-length": "0", "upload-metadata": metadataOf(aFile) })
    assert.deepStrictEqual([answer.status, ...told(answer, "upload-offset")], [201, "0"])
    assert.strictEqual(await tus.read(answer.headers.get("upload-file-id")), "")
  })

  it("may leave the length for later", async () => {
    const begun = await tus.post({ "upload-defer-length": "1", "upload-metadata": metadataOf(aFile) })
    assert.strictEqual(begun.status, 201)
    const path = begun.headers.get("location") ?? ""
    await tus.patch(path, 0, "abc")
    assert.deepStrictEqual(
      told(await tus.head(path), "upload-offset", "upload-defer-length", "upload-length"),
      ["3", "1", null]
    )
    assert.strictEqual((await tus.patch(path, 3, "d", { "upload-length": "2" })).status, 400)
    await tus.patch(path, 3, "d", { "upload-length": "6" })
    assert.deepStrictEqual(told(await tus.head(path), "upload-defer-length", "upload-length"), [null, "6"])
    assert.strictEqual((await tus.patch(path, 4, "e", { "upload-length": "7" })).status, 400)
    const last = await tus.patch(path, 4, "ef", { "upload-length": "6" })
    assert.strictEqual(await tus.read(last.headers.get("upload-file-id")), "abcdef")
    const ended = await tus.post({ "upload-defer-length": "1", "upload-metadata": metadataOf(aFile) }, "xyz")
    const empty = await tus.patch(ended.headers.get("location") ?? "", 3, "", { "upload-length": "3" })
    assert.strictEqual(await tus.read(empty.headers.get("upload-file-id")), "xyz")
  })

  it("tells when the upload is over unless it goes on: a day later", async () => {
    const path = await tus.begin(3, aFile)
    for (const answer of [await tus.patch(path, 0, "a"), await tus.head(path)]) {
      const [expires = null] = told(answer, "upload-expires")
      assert.strictEqual(new Date(expires ?? "").toUTCString(), expires)
      assert.approximately(Date.parse(expires ?? "") - Date.now(), 24 * 3_600_000, 60_000)
    }
  })

  it("is 400 with the header or the field that is wrong, and begins nothing", async () => {
    const good = { "upload-length": "1", "upload-metadata": metadataOf(aFile) }
    for (const [headers, text] of [
      [{ "upload-length": "" }, "Upload-Length: "],
      [{ "upload-length": "-1" }, "Upload-Length: "],
      [{ "upload-defer-length": "1" }, "Upload-Defer-Length: "],
      [{ "upload-metadata": "" }, "filename: "],
      [{ "upload-metadata": "filename !" }, "Upload-Metadata: "],
      [{ "upload-metadata": metadataOf({ filename: "a/b" }) }, "filename: "],
      [{ "upload-metadata": metadataOf({ filename: ".." }) }, "filename: "],
      [{ "upload-metadata": metadataOf({ filename: "a\r\nSet-Cookie: b=c" }) }, "filename: "],
      [{ "upload-metadata": metadataOf({ filename: "a\0b" }) }, "filename: "],
      [{ "upload-metadata": metadataOf({ path: "a/\0/b" }) }, "path: "],
      [{ "upload-metadata": metadataOf({ ...aFile, dir: "a\0" }) }, "dir: "],
      [{ "upload-metadata": metadataOf({ ...aFile, sha256: "\0" }) }, "sha256: "],
      [{ "upload-metadata": metadataOf({ ...aFile, modifiedAt: "\0" }) }, "modifiedAt: "],
      [{ "upload-metadata": metadataOf({ ...aFile, ifVersion: "\0" }) }, "ifVersion: "],
      [
        { "upload-metadata": metadataOf({ ...aFile, clientEncrypted: "1", encryptionKeyId: "\0" }) },
        "encryptionKeyId: "
      ],
      [{ "upload-metadata": metadataOf({ path: "a//b" }) }, "path: "],
      [{ "upload-metadata": metadataOf({ path: "../b" }) }, "path: "],
      [{ "upload-metadata": metadataOf({ ...aFile, dir: "a/b" }) }, "dir: "],
      [{ "upload-metadata": metadataOf({ ...aFile, sha256: "0" }) }, "sha256: "],
      [{ "upload-metadata": metadataOf({ ...aFile, modifiedAt: "today" }) }, "modifiedAt: "],
      [{ "upload-metadata": metadataOf({ ...aFile, ifVersion: "1" }) }, "ifVersion: "],
      [{ "upload-metadata": metadataOf({ ...aFile, link: "maybe" }) }, "link: "],
      [{ "upload-metadata": metadataOf({ ...aFile, clientEncrypted: "maybe" }) }, "clientEncrypted: "],
      [{ "upload-metadata": metadataOf({ ...aFile, encryptionKeyId: "ek_1" }) }, "encryptionKeyId: "],
      [{ "upload-checksum": "sha3 x" }, "Upload-Checksum: "],
      [{ "upload-concat": "whole" }, "Upload-Concat: "]
    ] as const) {
      const answer = await tus.post({ ...good, ...headers })
      assert.strictEqual(answer.status, 400, text)
      assert.isTrue(errorOf(answer).startsWith(text), errorOf(answer))
    }
    // Keys that mean nothing here are kept as they are, and a type that is none is not looked at.
    const odd = { "upload-metadata": metadataOf({ filename: "a", filetype: "\0", own: "\0" }) }
    const begun = await tus.post({ ...good, ...odd })
    assert.strictEqual(begun.status, 201, errorOf(begun))
    const kept = await tus.head(begun.headers.get("location") ?? "")
    assert.deepStrictEqual(told(kept, "upload-metadata"), [odd["upload-metadata"]])
    const ofNone = await tus.post({
      ...good,
      "upload-metadata": metadataOf({ filename: "a", directoryId: "dir_\0" })
    })
    assert.strictEqual(ofNone.status, 404)
    const large = await tus.post({ ...good, "upload-length": String(100 * 1024 ** 3 + 1) })
    assert.deepStrictEqual(
      [large.status, errorOf(large)],
      [413, `Upload-Length: at most ${100 * 1024 ** 3} bytes`]
    )
    assert.strictEqual((await tus.post({ ...good, "content-type": "text/plain" }, "a")).status, 415)
  })
})

describe("a checksum of what one request brings", () => {
  it("is compared, and nothing of wrong bytes is kept: 460", async () => {
    const path = await tus.begin(6, aFile)
    for (const algorithm of ["sha1", "sha256", "sha512", "md5"]) {
      const wrong = await tus.patch(path, 0, "abX", {
        "upload-checksum": `${algorithm} ${digestOf(algorithm, "abc")}`
      })
      assert.strictEqual(wrong.status, 460)
      assert.deepStrictEqual(told(await tus.head(path), "upload-offset"), ["0"])
    }
    await tus.patch(path, 0, "abc", { "upload-checksum": `sha1 ${digestOf("sha1", "abc")}` })
    const last = await tus.patch(path, 3, "def", { "upload-checksum": "crc32 xLGf1w==" })
    const right = last.status === 460 ? await tus.patch(path, 3, "def") : last
    assert.strictEqual(await tus.read(right.headers.get("upload-file-id")), "abcdef")
  })

  it("is 400 by an algorithm that OPTIONS does not name", async () => {
    const path = await tus.begin(6, aFile)
    const answer = await tus.patch(path, 0, "abc", { "upload-checksum": `sha3 ${digestOf("sha1", "abc")}` })
    assert.strictEqual(answer.status, 400)
  })

  it("that is wrong at the beginning leaves no upload", async () => {
    const headers = { "upload-length": "6", "upload-metadata": metadataOf({ filename: "checked" }) }
    const answer = await tus.post({ ...headers, "upload-checksum": `sha1 ${digestOf("sha1", "x")}` }, "abc")
    assert.strictEqual(answer.status, 460)
    const { body } = await tus.ask("GET", "/api/uploads")
    const names = (body as { uploads: ReadonlyArray<{ filename: string }> }).uploads.map(
      ({ filename }) => filename
    )
    assert.notInclude(names, "checked")
  })
})

describe("an upload that is ended", () => {
  it("is gone: 204, then 404", async () => {
    const path = await tus.begin(3, aFile)
    await tus.patch(path, 0, "a")
    assert.strictEqual((await tus.ask("DELETE", path)).status, 204)
    assert.strictEqual((await tus.head(path)).status, 404)
    assert.strictEqual((await tus.ask("DELETE", path)).status, 404)
  })

  it("leaves the file that it has become", async () => {
    const path = await tus.begin(3, aFile)
    const last = await tus.patch(path, 0, "abc")
    assert.strictEqual((await tus.ask("DELETE", path)).status, 204)
    assert.strictEqual((await tus.head(path)).status, 404)
    assert.strictEqual(await tus.read(last.headers.get("upload-file-id")), "abc")
  })
})

describe("an upload of others", () => {
  const partial = async (text: string): Promise<string> => {
    const path = await tus.begin(text.length, {}, { "upload-concat": "partial" })
    if (text !== "") await tus.patch(path, 0, text)
    return path
  }
  const final = (paths: ReadonlyArray<string>) => ({
    "upload-concat": `final;${paths.join(" ")}`,
    "upload-metadata": metadataOf(aFile)
  })

  it("is their bytes in their order, and then they are gone", async () => {
    const paths = [await partial("abc"), await partial(""), await partial("def")]
    assert.deepStrictEqual(told(await tus.head(paths[0] ?? ""), "upload-concat", "upload-offset"), [
      "partial",
      "3"
    ])
    const answer = await tus.post(final(paths))
    assert.strictEqual(answer.status, 201, errorOf(answer))
    assert.strictEqual(await tus.read(answer.headers.get("upload-file-id")), "abcdef")
    const path = answer.headers.get("location") ?? ""
    assert.deepStrictEqual(told(await tus.head(path), "upload-concat", "upload-offset", "upload-length"), [
      `final;${paths.join(" ")}`,
      "6",
      "6"
    ])
    assert.strictEqual((await tus.patch(path, 6, "x")).status, 403)
    for (const part of paths) assert.strictEqual((await tus.head(part)).status, 404)
  })

  it("is 400 where one is not there, not complete, or no part, and they stay", async () => {
    const whole = await partial("abc")
    const cut = await tus.begin(3, {}, { "upload-concat": "partial" })
    const other = await tus.begin(3, aFile)
    for (const [paths, text] of [
      [[whole, `/api/uploads/upl_${"0".repeat(22)}`], "there is no partial upload"],
      [[whole, cut], "the partial upload 2 is not complete"],
      [[whole, other], "there is no partial upload"]
    ] as const) {
      const answer = await tus.post(final(paths))
      assert.strictEqual(answer.status, 400)
      assert.include(errorOf(answer), `Upload-Concat: ${text}`)
    }
    assert.deepStrictEqual(told(await tus.head(whole), "upload-offset"), ["3"])
  })
})

describe("a client", () => {
  it("is told what is spoken by OPTIONS, without a key", async () => {
    for (const path of ["/api/uploads", "/api/uploads/upl_x"]) {
      const answer = await ask(server, "OPTIONS", path, { key: "" })
      assert.strictEqual(answer.status, 204)
      assert.deepStrictEqual(
        told(answer, "tus-version", "tus-extension", "tus-max-size", "tus-checksum-algorithm"),
        [
          "1.0.0",
          "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination,concatenation",
          String(100 * 1024 ** 3),
          "sha256,sha512,sha1,md5,crc32"
        ]
      )
    }
  })

  it("that cannot send PATCH, HEAD and DELETE sends POST with X-HTTP-Method-Override", async () => {
    const path = await tus.begin(3, aFile)
    const as = (method: string, headers: Readonly<Record<string, string>> = {}, body?: string) =>
      tus.ask("POST", path, { "x-http-method-override": method, ...headers }, body)
    const bytes = { "upload-offset": "0", "content-type": "application/offset+octet-stream" }
    assert.strictEqual((await as("PATCH", bytes, "a")).status, 204)
    assert.deepStrictEqual(told(await as("HEAD"), "upload-offset"), ["1"])
    assert.strictEqual((await as("PUT")).status, 404)
    assert.strictEqual((await as("DELETE")).status, 204)
    assert.strictEqual((await tus.head(path)).status, 404)
  })

  it("finds its open uploads, and what a finished one has become", async () => {
    const one = new TusClient(server, (await makeCaller(server, 0)).key)
    const path = await one.begin(6, { path: "x/y.txt", dir: "photos", modifiedAt: "2026-01-02T03:04:05Z" })
    await one.patch(path, 0, "abc")
    const { body } = await one.ask("GET", "/api/uploads")
    const { uploads } = body as { uploads: ReadonlyArray<Readonly<Record<string, unknown>>> }
    assert.strictEqual(uploads.length, 1)
    assert.deepInclude(uploads[0], {
      url: path,
      filename: "y.txt",
      path: "x/y.txt",
      dir: "photos",
      directoryId: null,
      partial: false,
      size: 6,
      offset: 3,
      modifiedAt: "2026-01-02T03:04:05.000Z",
      file: null
    })
    const last = await one.patch(path, 3, "def")
    const [fileId] = told(last, "upload-file-id")
    const done = await one.ask("GET", path)
    assert.strictEqual(textAt(done, "file", "fileId"), fileId)
    assert.strictEqual(textAt(done, "file", "name"), "y.txt")
    assert.deepStrictEqual((await one.ask("GET", "/api/uploads")).body, { uploads: [] })
  })
})
