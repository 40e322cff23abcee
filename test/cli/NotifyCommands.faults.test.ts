import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { TestServer } from "#test/harness/TestServer.ts"
import { signalbox } from "./Signalbox.ts"

const entry = normalize(join(import.meta.dirname, "../../src/cli/main.ts"))

const run = (args: ReadonlyArray<string>, key?: string) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() => signalbox(args, { SIGNALBOX_URL: url, SIGNALBOX_KEY: key ?? adminKey }))
  )

/** The same with a text at its standard input. */
const runWith = (input: string, args: ReadonlyArray<string>, key: string) =>
  Effect.flatMap(TestServer, ({ url }) =>
    Effect.promise(
      () =>
        new Promise<{ readonly code: number | null; readonly out: string }>((resolve, reject) => {
          const child = spawn(process.execPath, [entry, ...args], {
            env: { PATH: process.env["PATH"] ?? "", SIGNALBOX_URL: url, SIGNALBOX_KEY: key },
            stdio: ["pipe", "pipe", "inherit"]
          })
          let out = ""
          child.stdout.on("data", (piece: Buffer) => (out += piece.toString()))
          child.once("error", reject)
          child.once("close", (code) => resolve({ code, out }))
          child.stdin.end(input)
        })
    )
  )

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-notify-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

layer(TestServer.shared, { excludeTestServices: true })("signalbox, for notifications,", (it) => {
  it.effect(
    "makes a project and its key, sends with files and a piped body, and shows what became of it",
    () =>
      Effect.gen(function* () {
        const slug = `cli-${Date.now()}`
        const made = yield* run(["projects", "create", "From a shell", "--slug", slug, "--json"])
        assert.deepInclude(JSON.parse(made.out), { slug, name: "From a shell", joining: "link" })
        const tested = yield* run(["projects", "test", slug])
        assert.deepStrictEqual([tested.code, tested.out], [0, "Sent to 0 subscribers\n"])
        const created = yield* run([
          "project-keys",
          "create",
          "ci",
          "--projects",
          slug,
          "--rate",
          "30",
          "--json"
        ])
        const { id: keyId, key, rateLimitPerMinute } = JSON.parse(created.out)
        assert.strictEqual(rateLimitPerMinute, 30)

        const file = join(yield* directory, "build.log")
        yield* Effect.promise(() => writeFile(file, "all fine\n"))
        const flags = ["--app", "ci", "--title", "Build 7", "--priority", "low", "--format", "markdown"]
        const sent = yield* runWith(
          "# It failed\n",
          ["notify", "See the log", ...flags, "--file", file, "--json"],
          key
        )
        assert.strictEqual(sent.code, 0)
        const [message] = JSON.parse(sent.out).messages
        assert.deepInclude(message, { recipients: 0, attachments: 1 })
        const shown = JSON.parse((yield* run(["messages", "show", message.id, "--json"])).out)
        assert.deepInclude(shown, { app: "ci", title: "Build 7", message: "See the log", bodyBytes: 12 })
        assert.deepInclude(shown, {
          priority: "low",
          bodyFormat: "markdown",
          status: "done"
        })
        assert.deepInclude(shown.attachments[0], { filename: "build.log", size: 9, expired: false })

        const listed = yield* run(["messages", "list", "--project", slug])
        assert.match(
          listed.out,
          /^ID +PROJECT +APP +MESSAGE +RECIPIENTS +QUEUED FOR DIGEST +STATUS +CREATED AT$/m
        )
        assert.include(listed.out, message.id)
        const deliveries = yield* run(["messages", "deliveries", message.id])
        assert.match(deliveries.out, /^ID +SUBSCRIBER +KIND +STATUS +DIGEST/)
        assert.strictEqual((yield* run(["messages", "dead"])).code, 0)
        assert.strictEqual((yield* run(["messages", "redrive", "--project", slug])).out, "0 wait again\n")
        assert.match((yield* run(["subscribers", "list", slug])).out, /^ID +NAME +CHANNELS/)
        const chat = ["subscribers", "add", slug, "Ops", "https://93.184.216.34/hooks/x"]
        assert.deepInclude(yield* run([...chat, "--kind", "slack"]), {
          code: 0,
          out: "Ops gets messages from now on (slack)\n"
        })
        assert.match((yield* run(chat)).out, /\(webhook\)\nSecret, shown now and never again: whsec_/)
        assert.match((yield* run(["subscribers", "list", slug])).out, /slack active/)
        assert.strictEqual((yield* run(["messages", "delete", message.id])).out, `Deleted ${message.id}\n`)

        assert.strictEqual((yield* run(["project-keys", "revoke", keyId])).code, 0)
        const revoked = yield* run(["notify", "too late"], key)
        assert.deepStrictEqual([revoked.code, revoked.out], [77, ""])
        assert.strictEqual((yield* run(["projects", "delete", slug])).code, 0)
      })
  )

  it.effect("says which file cannot be read, and sends nothing then", () =>
    Effect.gen(function* () {
      const slug = `cli-none-${Date.now()}`
      yield* run(["projects", "create", "Nothing", "--slug", slug])
      const { key } = JSON.parse(
        (yield* run(["project-keys", "create", "ci", "--projects", slug, "--json"])).out
      )
      for (const path of ["/nonexistent", tmpdir()]) {
        const failed = yield* run(["notify", "x", "--file", path], key)
        assert.deepStrictEqual([failed.code, failed.out], [1, ""])
        assert.include(failed.err, `${path} cannot be read`)
      }
      const wrongKind = yield* run(["notify", "x"])
      assert.strictEqual(wrongKind.code, 77)
      assert.include(wrongKind.err, "use a project key (prj_…)")
      const list = yield* run(["messages", "list", "--project", slug, "--json"])
      assert.deepStrictEqual(JSON.parse(list.out).messages, [])
    })
  )
})
