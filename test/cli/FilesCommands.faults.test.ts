import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises"
import { join, normalize } from "node:path"
import { cuttingProxy } from "#test/files/cli/CuttingProxy.ts"
import { localDirectory } from "#test/files/cli/LocalDirectory.ts"
import { sha256Of } from "#test/files/transfers/TransferSteps.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { signalbox } from "./Signalbox.ts"

const entry = normalize(join(import.meta.dirname, "../../src/cli/main.ts"))

/** Runs a command to its end, at the server or at another address of it. */
const run = (args: ReadonlyArray<string>, at?: string) =>
  Effect.flatMap(TestServer, ({ adminKey, url }) =>
    Effect.promise(() => signalbox(args, { SIGNALBOX_URL: at ?? url, SIGNALBOX_KEY: adminKey }))
  )

/** Starts one that is killed at the end of the test, if not before; its standard input is `input`. */
const started = (args: ReadonlyArray<string>, at: string, input = "") =>
  Effect.acquireRelease(
    Effect.map(TestServer, ({ adminKey }) => {
      const child = spawn(process.execPath, [entry, ...args], {
        env: { PATH: process.env["PATH"] ?? "", SIGNALBOX_URL: at, SIGNALBOX_KEY: adminKey },
        stdio: ["pipe", "pipe", "inherit"]
      })
      child.stdin.end(input)
      return child
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

const ended = (child: ChildProcess) =>
  Effect.promise(() => new Promise<void>((resolve) => child.once("close", () => resolve())))

const read = (path: string) => Effect.promise(() => readFile(path))

const mebibyte = 1024 * 1024
const long = randomBytes(24 * mebibyte)
const half = () => 12 * mebibyte

layer(TestServer.own(), { excludeTestServices: true })("signalbox, for shared files,", (it) => {
  it.effect("puts directories, sends what has changed, gets archives, and says what went wrong", () =>
    Effect.gen(function* () {
      const here = yield* localDirectory
      const photos = join(here, "photos")
      yield* Effect.promise(async () => {
        await mkdir(join(photos, "a b"), { recursive: true })
        await writeFile(join(photos, "a b/ü.txt"), "short\n")
        await writeFile(join(photos, "nothing"), "")
        await writeFile(join(photos, "bad\t"), "")
      })
      const { port } = yield* TestServer
      const wire = yield* cuttingProxy(port, () => Infinity, "cut", "POST /api/upload")
      const put = yield* run(["files", "put", photos, "docs/2027"], wire.url)
      assert.strictEqual(put.code, 1)
      assert.include(put.out, `${join(photos, "bad\t")}: path`)
      assert.include(put.out, "2 files (6 bytes) sent to docs/2027")
      assert.include(put.err, "1 file could not be sent")
      const first = yield* run(["files", "versions", "docs/2027/photos/nothing", "--json"])
      assert.lengthOf(JSON.parse(first.out).versions, 1, "the answer to a form was lost")

      yield* Effect.promise(() => writeFile(join(photos, "nothing"), "something"))
      const again = JSON.parse(
        (yield* run([
          "files",
          "put",
          join(photos, "a b"),
          join(photos, "nothing"),
          "docs/2027/photos",
          "--json"
        ])).out
      )
      assert.deepStrictEqual(again.unchanged, ["docs/2027/photos/a b/ü.txt"])
      assert.deepInclude(again.sent[0], { path: "docs/2027/photos/nothing", size: 9 })

      const archive = yield* run(["files", "get", "docs", here])
      assert.strictEqual(archive.code, 0)
      assert.isAbove((yield* Effect.promise(() => stat(join(here, "docs.tgz")))).size, 1_000)
      assert.strictEqual((yield* run(["files", "get", "/", here])).code, 0)
      assert.isAbove((yield* Effect.promise(() => stat(join(here, "files.tgz")))).size, 1_000)
      const shown = yield* run(["files", "get", "docs/2027/photos/a b/ü.txt", "-"])
      assert.deepStrictEqual([shown.code, shown.out], [0, "short\n"])
      const missing = yield* run(["files", "get", "docs/none"])
      assert.deepStrictEqual([missing.code, missing.out], [1, ""])
      assert.include(missing.err, "There is no file or directory docs/none on the server")
      const mistaken = yield* run(["files", "put", photos, join(photos, "nothing")])
      assert.include(mistaken.err, "is a file here, and the last word is the directory on the server")
    }).pipe(Effect.scoped)
  )

  it.effect("goes on with an upload and a download that were killed", () =>
    Effect.gen(function* () {
      const { port } = yield* TestServer
      const here = yield* localDirectory
      const path = join(here, "long.bin")
      yield* Effect.promise(() => writeFile(path, long))
      const stalled = yield* cuttingProxy(port, half, "stall")
      const upload = yield* started(["files", "put", path, "docs"], stalled.url)
      yield* eventually(
        "half of it has gone",
        Effect.sync(() => stalled.sentBytes() > 11 * mebibyte)
      )
      upload.kill("SIGKILL")
      yield* ended(upload)
      const open = yield* cuttingProxy(port, () => Number.MAX_SAFE_INTEGER)
      const put = yield* run(["files", "put", path, "docs", "--json"], open.url)
      assert.strictEqual(put.code, 0)
      const { fileId, sha256 } = JSON.parse(put.out).sent[0]
      assert.strictEqual(sha256, sha256Of(long))
      assert.isBelow(open.sentBytes(), 17 * mebibyte)

      const back = join(here, "back.bin")
      const slow = yield* cuttingProxy(port, half, "stall")
      const download = yield* started(["files", "get", fileId, back], slow.url)
      yield* eventually(
        "half of it is here",
        Effect.tryPromise(async () => (await stat(`${back}.part`)).size > 8 * mebibyte)
      )
      download.kill("SIGKILL")
      yield* ended(download)
      const before = open.gotBytes()
      const got = yield* run(["files", "get", fileId, back, "--json"], open.url)
      assert.isAbove(JSON.parse(got.out).resumedAt, 8 * mebibyte)
      assert.isBelow(open.gotBytes() - before, 17 * mebibyte)
      assert.strictEqual(sha256Of(yield* read(back)), sha256Of(long))
      assert.deepStrictEqual((yield* Effect.promise(() => readdir(here))).toSorted(), [
        "back.bin",
        "long.bin"
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("shares by a link, gets it with its password, lists and revokes it", () =>
    Effect.gen(function* () {
      const { url } = yield* TestServer
      const here = yield* localDirectory
      const path = join(here, "letter.txt")
      yield* Effect.promise(() => writeFile(path, "for you"))
      yield* run(["files", "put", path, "docs"])
      const flags = ["--max", "3", "--expires", "8h", "--label", "for Ada", "--password"]
      const shared = yield* started(["share", "docs/letter.txt", ...flags], url, "Grüße\n")
      let link = ""
      shared.stdout.on("data", (piece: Buffer) => (link += piece.toString()))
      yield* ended(shared)
      assert.match(link, /^http:\/\/127\.0\.0\.1:\d+\/direct\/[0-9A-Za-z]{22}\n$/)
      const locked = yield* run(["get", link.trim(), join(here, "back.txt")])
      assert.strictEqual(locked.code, 1)
      assert.include(locked.err, "The link has a password")
      const get = yield* started(["get", link.trim(), join(here, "back.txt"), "--password"], url, "Grüße\n")
      yield* ended(get)
      assert.strictEqual((yield* read(join(here, "back.txt"))).toString(), "for you")
      const listed = JSON.parse((yield* run(["share", "list", "docs/letter.txt", "--json"])).out)
      assert.deepInclude(listed.links[0], {
        uses: 1,
        maxRequests: 3,
        label: "for Ada",
        passwordProtected: true
      })
      assert.strictEqual((yield* run(["share", "revoke", link.trim()])).out, "Revoked\n")
      const gone = yield* run(["get", link.trim(), here])
      assert.deepStrictEqual([gone.code, gone.err], [1, "signalbox: Link not found\n"])
    }).pipe(Effect.scoped)
  )
})
