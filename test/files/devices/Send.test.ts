import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { askBy, signIn } from "#test/accounts/sessions/SignedIn.ts"
import { sha256Of } from "#test/files/transfers/TransferSteps.ts"
import { makeTree } from "#test/files/sync/SyncedTree.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const
const path = "/api/send"

/** A form: its fields before or behind the file. */
const formOf = (
  fields: Readonly<Record<string, string>>,
  { isLast = true, name = "a.txt", text = "hello" } = {}
): FormData => {
  const form = new FormData()
  const addFile = () => form.append("file", new Blob([text], { type: "text/plain" }), name)
  if (!isLast) addFile()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  if (isLast) addFile()
  return form
}

interface Sent {
  readonly ok: true
  readonly fileId: string
  readonly versionGroupId: string
  readonly clipboardPath: string | null
}

/** A user who sends files. */
const makeSender = Effect.gen(function* () {
  const tree = yield* makeTree
  const { ask, key } = tree
  const send = (fields: Readonly<Record<string, string>>, how?: Parameters<typeof formOf>[1], by = key) =>
    ask("POST", path, { key: by, body: formOf(fields, how) })
  const sent = (...asked: Parameters<typeof send>) =>
    Effect.map(send(...asked), ({ json, status }) => {
      assert.strictEqual(status, 200, JSON.stringify(json))
      return json as Sent
    })
  return { ...tree, send, sent }
})

layer(TestServer.shared, live)("sending", (it) => {
  it.effect("to a machine: the file is in its manifest alone, in the folder itself", () =>
    Effect.gen(function* () {
      const { ask, device, key, manifest, sent } = yield* makeSender
      const [laptop, phone] = [yield* device("Laptop"), yield* device("Phone")]
      const answer = yield* sent({ target: "machine", deviceId: laptop })
      assert.deepStrictEqual(Object.keys(answer), ["ok", "fileId", "versionGroupId", "clipboardPath"])
      assert.strictEqual(answer.ok, true)
      assert.match(answer.fileId, /^fv_[0-9A-Za-z]{22}$/)
      assert.match(answer.versionGroupId, /^fg_[0-9A-Za-z]{22}$/)
      assert.strictEqual(answer.clipboardPath, "~/sharefiles/a.txt")
      const { directories, files } = yield* manifest(laptop)
      assert.deepStrictEqual(directories, [])
      assert.lengthOf(files, 1)
      assert.deepInclude(files[0] as object, {
        versionGroupId: answer.versionGroupId,
        currentFileId: answer.fileId,
        originalName: "a.txt",
        fileHash: sha256Of("hello"),
        fileSize: 5,
        mimeType: "text/plain",
        directoryId: null
      })
      assert.deepStrictEqual((yield* manifest(phone)).files, [])
      assert.deepStrictEqual((yield* manifest()).files, [])
      const read = yield* ask("GET", `/api/files/${answer.fileId}`, { key })
      assert.strictEqual(Buffer.from(read.bytes).toString(), "hello")
      const { directories: listed } = (yield* ask("GET", "/api/directories", { key })).json as {
        readonly directories: ReadonlyArray<{ readonly name: string }>
      }
      assert.deepStrictEqual(
        listed.map(({ name }) => name),
        ["Inbox"]
      )
    })
  )

  it.effect("to a machine names the place in the device's own folder, and makes versions of a name", () =>
    Effect.gen(function* () {
      const { ask, device, key, manifest, sent } = yield* makeSender
      const laptop = yield* device("Laptop")
      const first = yield* sent({ target: "machine", deviceId: laptop })
      for (const [syncRoot, expected] of [
        ["/home/ada/Files/", "/home/ada/Files/a.txt"],
        ["/", "/a.txt"],
        ["C:/Users/Ada", "C:/Users/Ada/a.txt"]
      ] as const) {
        yield* ask("PATCH", `/api/devices/${laptop}`, { key, json: { syncRoot } })
        const answer = yield* sent({ target: "machine", deviceId: laptop }, { text: syncRoot })
        assert.deepStrictEqual(
          [answer.clipboardPath, answer.versionGroupId],
          [expected, first.versionGroupId]
        )
      }
      const { files } = yield* manifest(laptop)
      assert.lengthOf(files, 1)
      assert.deepInclude(files[0] as object, { version: 4, fileHash: sha256Of("C:/Users/Ada") })
    })
  )

  it.effect("to the Inbox: it is there for all to move, and in no manifest", () =>
    Effect.gen(function* () {
      const { ask, device, key, manifest, sent } = yield* makeSender
      const laptop = yield* device("Laptop")
      const answer = yield* sent({ target: "inbox" }, { isLast: false })
      assert.isNull(answer.clipboardPath)
      assert.deepStrictEqual((yield* manifest(laptop)).files, [])
      const { directories } = (yield* ask("GET", "/api/directories", { key })).json as {
        readonly directories: ReadonlyArray<{
          readonly id: string
          readonly name: string
          readonly isInbox: boolean
        }>
      }
      const inbox = directories.find(({ isInbox }) => isInbox)
      assert.strictEqual(inbox?.name, "Inbox")
      const { files } = (yield* ask("GET", `/api/directories/${inbox?.id ?? ""}`, { key })).json as {
        readonly files: ReadonlyArray<{ readonly id: string; readonly name: string }>
      }
      assert.deepStrictEqual(
        files.map(({ id, name }) => [id, name]),
        [[answer.fileId, "a.txt"]]
      )
    })
  )

  it.effect("to a directory is an upload that follows its flags", () =>
    Effect.gen(function* () {
      const { directory, flagged, names, sent } = yield* makeSender
      const bucket = yield* directory(undefined, "Work")
      const plans = yield* directory(bucket, "plans")
      yield* flagged("directory", plans.id)
      const answer = yield* sent({ target: "directory", directoryId: plans.id })
      assert.isNull(answer.clipboardPath)
      assert.deepStrictEqual(yield* names(), ["a.txt", "plans/"])
      yield* sent({ target: "directory", directoryId: bucket.id }, { name: "b.txt" })
      assert.deepStrictEqual(yield* names(), ["a.txt", "plans/"])
    })
  )

  it.effect("keeps bytes that are encrypted already, with their key's id", () =>
    Effect.gen(function* () {
      const { device, manifest, sent } = yield* makeSender
      const laptop = yield* device("Laptop")
      yield* sent({ clientEncrypted: "true", encryptionKeyId: "ek_1", target: "machine", deviceId: laptop })
      assert.deepInclude((yield* manifest(laptop)).files[0] as object, {
        isEncrypted: true,
        encryptionKeyId: "ek_1",
        fileHash: sha256Of("hello")
      })
    })
  )

  it.effect("is refused by the field, and nothing is there", () =>
    Effect.gen(function* () {
      const { ask, device, directory, key, send } = yield* makeSender
      const other = yield* makeSender
      const laptop = yield* device("Laptop")
      const bucket = yield* directory(undefined, "Work")
      const theirs = yield* other.directory(undefined, "Theirs")
      const foreign = yield* other.device("Theirs")
      const hidden = yield* other.directory(undefined, foreign, "device")
      for (const [fields, status, error] of [
        [{}, 400, "target: expected machine, inbox or directory"],
        [{ target: "moon" }, 400, "target: expected machine, inbox or directory"],
        [{ target: "machine" }, 400, "deviceId: is required where target is machine"],
        [{ target: "directory" }, 400, "directoryId: is required where target is directory"],
        [{ target: "inbox", deviceId: laptop }, 400, "deviceId: is for the target machine only"],
        [
          { target: "machine", deviceId: laptop, directoryId: bucket.id },
          400,
          "directoryId: is for the target directory only"
        ],
        [{ target: "machine", deviceId: newId("dev") }, 404, "Device not found"],
        [{ target: "machine", deviceId: foreign }, 404, "Device not found"],
        [{ target: "directory", directoryId: newId("dir") }, 404, "Directory not found"],
        [{ target: "directory", directoryId: theirs.id }, 404, "Directory not found"],
        [{ target: "directory", directoryId: hidden.id }, 404, "Directory not found"],
        [
          { target: "inbox", encryptionKeyId: "ek_1" },
          400,
          "encryptionKeyId: is for bytes with clientEncrypted=true"
        ],
        [
          { target: "inbox", sha256: "0".repeat(64) },
          422,
          `sha256: the bytes that came have the SHA-256 ${sha256Of("hello")}`
        ]
      ] as const) {
        const refused = yield* send(fields)
        assert.deepStrictEqual([refused.status, refused.json], [status, { error }], JSON.stringify(fields))
      }
      const two = formOf({ target: "inbox" })
      two.append("file", new Blob(["more"]), "b.txt")
      const none = new FormData()
      none.append("target", "inbox")
      for (const body of [two, none]) {
        const refused = yield* ask("POST", path, { key, body })
        assert.deepStrictEqual([refused.status, refused.json], [400, { error: "file: expected one file" }])
      }
      const json = yield* ask("POST", path, { key, json: { target: "inbox" } })
      assert.deepStrictEqual([json.status, json.json], [400, { error: "body: expected multipart/form-data" }])
      const found = yield* ask("GET", "/api/files?q=a", { key })
      assert.deepInclude(found.json as object, { files: [] })
    })
  )

  it.effect("takes the scope write, for the Inbox or the directory's bucket at least; sessions will do", () =>
    Effect.gen(function* () {
      const { device, directory, key, send, ask } = yield* makeSender
      const { makeKey } = yield* TestServer
      const laptop = yield* device("Laptop")
      const work = yield* directory(undefined, "work")
      const by = (scope: string) => Effect.map(makeKey({ scopes: [scope] }, key), (made) => made.key)
      const toInbox = { target: "inbox" }
      const toWork = { target: "directory", directoryId: work.id }
      const toLaptop = { target: "machine", deviceId: laptop }
      for (const [scope, statuses] of [
        ["write", [200, 200, 200]],
        ["write:work", [403, 200, 404]],
        ["write:Inbox", [200, 404, 404]],
        ["read", [403, 403, 403]]
      ] as const) {
        const scoped = yield* by(scope)
        const answers = yield* Effect.forEach([toInbox, toWork, toLaptop], (fields) =>
          send(fields, {}, scoped)
        )
        assert.deepStrictEqual(
          answers.map(({ status }) => status),
          [...statuses],
          scope
        )
      }
      const cookie = yield* signIn(key)
      assert.strictEqual((yield* askBy(cookie, "POST", path, { body: formOf(toInbox) })).status, 200)
      const headers = { "x-device-id": newId("dev") }
      const unknown = yield* ask("POST", path, { key, headers, body: formOf(toInbox) })
      assert.deepStrictEqual([unknown.status, unknown.json], [404, { error: "Device not found" }])
    })
  )

  it.effect("to a device that is deleted ends in the trash, from where it comes back as a bucket", () =>
    Effect.gen(function* () {
      const { ask, device, key, sent } = yield* makeSender
      const [laptop, unused] = [yield* device("Ada's old laptop"), yield* device("Unused")]
      const answer = yield* sent({ target: "machine", deviceId: laptop })
      for (const id of [laptop, unused]) {
        const deleted = yield* ask("DELETE", `/api/devices/${id}`, { key })
        assert.deepStrictEqual([deleted.status, deleted.json], [200, { success: true }])
      }
      assert.strictEqual((yield* ask("GET", `/api/files/${answer.fileId}`, { key })).status, 404)
      const { items } = (yield* ask("GET", "/api/trash", { key })).json as {
        readonly items: ReadonlyArray<{ readonly name: string; readonly itemId: string }>
      }
      assert.lengthOf(items, 1)
      assert.match(items[0]?.name ?? "", /^sent-to-Ada-s-old-laptop-\w{6}$/)
      const restored = yield* ask("POST", `/api/directories/${items[0]?.itemId ?? ""}/restore`, { key })
      assert.include([200, 201], restored.status, JSON.stringify(restored.json))
      assert.strictEqual((yield* ask("GET", `/api/files/${answer.fileId}`, { key })).status, 200)
    })
  )

  it.effect("to a device has nothing to do with a bucket of the device's id, or a key of that", () =>
    Effect.gen(function* () {
      const { ask, device, key, manifest, sent } = yield* makeSender
      const { makeKey } = yield* TestServer
      const [before, after] = [yield* device("Before"), yield* device("After")]
      const put = (bucket: string) => ask("PUT", `/api/upload/${bucket}/own.txt`, { key, body: "own" })
      const isMade = { status: 201 }
      assert.deepInclude(yield* put(before), isMade)
      const { fileId } = yield* sent({ target: "machine", deviceId: before })
      yield* sent({ target: "machine", deviceId: after })
      assert.deepInclude(yield* put(after), isMade)
      for (const id of [before, after]) {
        const { files } = yield* manifest(id)
        assert.deepStrictEqual(
          files.map(({ originalName }) => originalName),
          ["a.txt"]
        )
      }
      const { directories } = (yield* ask("GET", "/api/directories", { key })).json as {
        readonly directories: ReadonlyArray<{ readonly name: string }>
      }
      assert.sameMembers(
        directories.map(({ name }) => name),
        ["Inbox", before, after]
      )
      const narrow = yield* makeKey({ scopes: [`read:${before}`, `write:${before}`] }, key)
      assert.strictEqual((yield* ask("GET", `/api/files/${fileId}`, { key: narrow.key })).status, 404)
      assert.deepStrictEqual((yield* manifest(before, { key: narrow.key })).files, [])
      const refused = yield* ask("POST", path, {
        key: narrow.key,
        body: formOf({ target: "machine", deviceId: before })
      })
      assert.strictEqual(refused.status, 404)
    })
  )

  it.effect("to a device that is deleted comes back beside a bucket that has its name", () =>
    Effect.gen(function* () {
      const { ask, device, directory, key, sent } = yield* makeSender
      const laptop = yield* device("Laptop")
      yield* sent({ target: "machine", deviceId: laptop })
      const name = `sent-to-Laptop-${laptop.slice(-6)}`
      yield* directory(undefined, name)
      const deleted = yield* ask("DELETE", `/api/devices/${laptop}`, { key })
      assert.deepStrictEqual([deleted.status, deleted.json], [200, { success: true }])
      const { items } = (yield* ask("GET", "/api/trash", { key })).json as {
        readonly items: ReadonlyArray<{ readonly itemId: string }>
      }
      const [item] = items
      assert.deepInclude(item as object, { name, path: name })
      const restore = (how: string) =>
        ask("POST", `/api/directories/${item?.itemId ?? ""}/restore${how}`, { key })
      assert.strictEqual((yield* restore("")).status, 409)
      assert.deepInclude((yield* restore("?onConflict=rename")).json as object, { path: `${name}-1` })
    })
  )

  it.effect("from many at once to one machine makes one directory, and every file", () =>
    Effect.gen(function* () {
      const { device, manifest, sent } = yield* makeSender
      const laptop = yield* device("Laptop")
      yield* Effect.all(
        Array.from({ length: 12 }, (_, index) =>
          sent({ target: "machine", deviceId: laptop }, { name: `${index % 6}.txt`, text: String(index) })
        ),
        { concurrency: "unbounded" }
      )
      const { files } = yield* manifest(laptop)
      assert.deepStrictEqual(
        files.map(({ originalName, version }) => [originalName, version]),
        Array.from({ length: 6 }, (_, index) => [`${index}.txt`, 2])
      )
    })
  )
})
