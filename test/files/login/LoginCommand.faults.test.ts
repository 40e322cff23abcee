import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, normalize } from "node:path"
import { askBy, signIn } from "#test/accounts/sessions/SignedIn.ts"
import { signalbox } from "#test/cli/Signalbox.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const entry = normalize(join(import.meta.dirname, "../../../src/cli/main.ts"))

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-login-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

/** `signalbox login` with a configuration of its own, up to the address that it shows; `ended`: what it came to. */
const beginLogin = (url: string, config: string) =>
  Effect.promise(
    () =>
      new Promise<{ readonly shown: string; readonly ended: Promise<{ code: number | null; out: string }> }>(
        (resolve, reject) => {
          const child = spawn(process.execPath, [entry, "login", url, "--name", "build server"], {
            env: { PATH: process.env["PATH"] ?? "", XDG_CONFIG_HOME: config },
            stdio: ["ignore", "pipe", "pipe"]
          })
          let [out, err] = ["", ""]
          child.stdout.on("data", (piece: Buffer) => (out += piece.toString()))
          const ended = new Promise<{ code: number | null; out: string }>((end) =>
            child.once("close", (code) => end({ code, out }))
          )
          child.stderr.on("data", (piece: Buffer) => {
            err += piece.toString()
            if (err.includes("Waiting")) resolve({ shown: err, ended })
          })
          child.once("error", reject)
          child.once("close", () => reject(new Error(`it ended: ${err}`)))
        }
      )
  )

layer(TestServer.shared, { excludeTestServices: true })("signalbox login", (it) => {
  it.effect("shows address and digits, keeps the key where later commands find it, and forgets it", () =>
    Effect.gen(function* () {
      const { makeUser, url } = yield* TestServer
      const { key } = yield* makeUser()
      const config = yield* directory
      const { ended, shown } = yield* beginLogin(`${url}/`, config)
      assert.include(shown, "let build server in")
      const [, token = ""] = /\/cli#([0-9A-Za-z]{22})$/m.exec(shown) ?? []
      const cookie = yield* signIn(key)
      const read = yield* askBy(cookie, "POST", "/api/cli/auth/read", { json: { token } })
      const { digits, name } = read.json as { readonly digits: string; readonly name: string }
      assert.strictEqual(name, "build server")
      assert.include(shown, `The page shows the digits ${digits}.`)
      const scopes = ["full"]
      const done = yield* askBy(cookie, "POST", "/api/cli/auth/complete", { json: { token, scopes } })
      assert.strictEqual(done.status, 200)
      const { code, out } = yield* Effect.promise(() => ended)
      const file = join(config, "signalbox", "login.json")
      assert.deepStrictEqual([code, out], [0, `Logged in to ${url}. The key is in ${file}.\n`])
      assert.strictEqual((yield* Effect.promise(() => stat(file))).mode & 0o777, 0o600)

      const env = { XDG_CONFIG_HOME: config }
      const run = (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
        Effect.promise(() => signalbox(args, { ...env, ...more }))
      const listed = yield* run(["devices", "list"])
      assert.match(
        listed.out,
        /^ID +NAME +PLATFORM +SYNC ROOT +LAST SEEN AT +CREATED AT\ndev_\w{22} +build server +cli +/
      )
      // A key is sent to no other server than the one that made it.
      const elsewhere = yield* run(["devices", "list"], {
        SIGNALBOX_URL: "http://127.0.0.1:1",
        DATA_DIR: config
      })
      assert.strictEqual(elsewhere.code, 78)
      const out1 = yield* run(["logout"])
      assert.deepStrictEqual([out1.code, out1.out.startsWith(`${file} is gone.`)], [0, true])
      const out2 = yield* run(["logout"])
      assert.deepStrictEqual([out2.code, out2.out.startsWith(`There is no ${file}`)], [0, true])
    })
  )

  it.effect("goes behind SIGNALBOX_URL with SIGNALBOX_KEY, and behind DATA_DIR", () =>
    Effect.gen(function* () {
      const { makeUser, url } = yield* TestServer
      const config = yield* directory
      const file = join(config, "signalbox", "login.json")
      const { key } = yield* makeUser()
      yield* Effect.promise(async () => {
        await mkdir(join(config, "signalbox"))
        await writeFile(file, JSON.stringify({ url, key: "sk_nobody" }))
        await writeFile(join(config, "admin.json"), JSON.stringify({ url, adminKey: key }))
      })
      const run = (env: Readonly<Record<string, string>>) =>
        Effect.map(
          Effect.promise(() => signalbox(["devices", "list"], { XDG_CONFIG_HOME: config, ...env })),
          ({ code }) => code
        )
      assert.strictEqual(yield* run({}), 77)
      assert.strictEqual(yield* run({ SIGNALBOX_URL: url, SIGNALBOX_KEY: key }), 0)
      assert.strictEqual(yield* run({ DATA_DIR: config }), 0)
      assert.strictEqual(yield* run({ DATA_DIR: config, SIGNALBOX_URL: `${url}/` }), 0)
      // Another server does not get the key of this one's file; it is not even asked.
      assert.strictEqual(yield* run({ DATA_DIR: config, SIGNALBOX_URL: "http://127.0.0.1:1" }), 78)
      yield* Effect.promise(() => writeFile(file, "{"))
      assert.strictEqual(yield* run({}), 78)
      assert.strictEqual(yield* Effect.promise(() => readFile(file, "utf8")), "{")
    })
  )
})
