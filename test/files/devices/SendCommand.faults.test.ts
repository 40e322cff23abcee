import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { signalbox } from "#test/cli/Signalbox.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-send-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

layer(TestServer.shared, { excludeTestServices: true })("signalbox devices and send", (it) => {
  it.effect("register a device, send it files, and delete it", () =>
    Effect.gen(function* () {
      const { ask, makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const here = yield* directory
      const [one, two] = [join(here, "one.txt"), join(here, "zwei ü.txt")]
      yield* Effect.promise(() =>
        Promise.all([writeFile(one, "1"), writeFile(two, "2"), mkdir(join(here, "d"))])
      )
      const run = (...args: ReadonlyArray<string>) =>
        Effect.promise(() => signalbox(args, { SIGNALBOX_URL: url, SIGNALBOX_KEY: key }))
      const made = yield* run(
        "devices",
        "create",
        "Laptop",
        "--platform",
        "desktop",
        "--sync-root",
        "/home/ada"
      )
      assert.strictEqual(made.code, 0, made.err)
      const [id = ""] = /dev_\w{22}/.exec(made.out) ?? []
      const changed = yield* run("devices", "update", id, "--name", "Desk")
      assert.strictEqual(changed.out, `${id} is Desk, with /home/ada\n`)

      const sent = yield* run("send", one, two, "--device", "Desk", "--json")
      assert.strictEqual(sent.code, 0, sent.err)
      const { files } = JSON.parse(sent.out) as {
        readonly files: ReadonlyArray<{
          readonly name: string
          readonly fileId: string
          readonly clipboardPath: string
        }>
      }
      assert.deepStrictEqual(
        files.map(({ clipboardPath, name }) => [name, clipboardPath]),
        [
          ["one.txt", "/home/ada/one.txt"],
          ["zwei ü.txt", "/home/ada/zwei ü.txt"]
        ]
      )
      const read = yield* ask("GET", `/api/files/${files[1]?.fileId ?? ""}`, { key })
      assert.strictEqual(Buffer.from(read.bytes).toString(), "2")
      const inbox = yield* run("send", one)
      assert.match(inbox.out, /^NAME +FILE ID\none\.txt +fv_\w{22}\n$/)
      yield* ask("POST", "/api/directories", { key, json: { name: "docs" } })
      assert.strictEqual((yield* run("send", one, "--directory", "docs/")).code, 0)

      const refusals = [
        [[one, "--device", "Nobody"], 1, "There is no device Nobody"],
        [[one, "--directory", "nowhere"], 1, "There is no directory nowhere on the server"],
        [[one, "--device", "Desk", "--directory", "docs"], 1, "Either --device or --directory, not both"],
        [[join(here, "none")], 1, "cannot be read"],
        [[join(here, "d")], 1, "it is a directory"],
        [[], 2, "missing argument: file"]
      ] as const
      const answers = yield* Effect.all(
        refusals.map(([args]) => run("send", ...args)),
        { concurrency: 3 }
      )
      for (const [index, [, code, words]] of refusals.entries()) {
        assert.strictEqual(answers[index]?.code, code, answers[index]?.err)
        assert.include(answers[index]?.err, words)
      }
      const deleted = yield* run("devices", "delete", id)
      assert.strictEqual(deleted.out, `Deleted ${id}\n`)
      assert.strictEqual((yield* run("devices", "delete", id)).code, 1)
    })
  )
})
