import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { createReadStream, mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { Versions } from "#src/files/tree/Versions.ts"
import { cuttingProxy } from "#test/harness/CuttingProxy.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { incoming, pieces } from "#test/infra/blobs/BlobSteps.ts"
import { ensured, plain, treeLayer } from "../tree/TreeSteps.ts"

/** Of the directory; by hand also 2048, with 50 cuts. */
const mebibytes = Number(process.env["ARCHIVE_MIB"] ?? 24)
const cuts = Number(process.env["ARCHIVE_CUTS"] ?? 10)

const programs = requirement("curl and wget", () =>
  ["curl", "wget"].every((name) => spawnSync(name, ["--version"]).status === 0)
    ? undefined
    : "curl or wget is not on the PATH"
)

const run = (command: string, args: ReadonlyArray<string>) =>
  Effect.promise(
    () =>
      new Promise<number | null>((resolve) =>
        spawn(command, args, { stdio: "ignore" }).on("close", (status) => resolve(status))
      )
  )

/** A directory of files of a mebibyte, and the hash of its archive. */
const madeDirectory = Effect.gen(function* () {
  const { ask, makeUser } = yield* TestServer
  const blobs = yield* BlobStore
  const { write } = yield* Versions
  const { id: userId, key } = yield* makeUser()
  const directory = yield* ensured(userId, "folder")
  for (let n = 0; n < mebibytes; n++) {
    const bytes = pieces([`${n} `.repeat(2 ** 20).slice(0, 2 ** 20)])
    yield* blobs.put(incoming(userId, null, 2 ** 20), bytes, (blob) =>
      write(userId, "test", { ...plain, directory, name: `${n}`, blob })
    )
  }
  const path = `/api/download/${directory.id}`
  const head = yield* ask("HEAD", path, { key })
  return { key, path, sizeBytes: Number(head.headers.get("content-length")) }
})

const sha256Of = (path: string) =>
  Effect.promise(async () => {
    const hash = createHash("sha256")
    for await (const piece of createReadStream(path)) hash.update(piece)
    return hash.digest("hex")
  })

const served = treeLayer.pipe(Layer.provideMerge(TestServer.own()))

describeWith(programs, "an archive whose download is cut", () => {
  layer(served, { excludeTestServices: true, timeout: "120 seconds" })((it) => {
    const timeoutMillis = 120_000 + 1_000 * mebibytes
    it.effect(
      "is gone on with by curl -C - and wget -c, byte for byte",
      () =>
        Effect.gen(function* () {
          const { port, url } = yield* TestServer
          const { key, path, sizeBytes } = yield* madeDirectory
          const to = mkdtempSync(join(tmpdir(), "resume-"))
          yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(to, { recursive: true })))
          const header = `Authorization: Bearer ${key}`
          const [whole, byCurl, byWget] = ["whole", "curl", "wget"].map((name) => join(to, name)) as [
            string,
            string,
            string
          ]
          assert.strictEqual(yield* run("curl", ["-fsS", "-H", header, "-o", whole, `${url}${path}`]), 0)
          assert.strictEqual(statSync(whole).size, sizeBytes)

          const random = seededRandom(21)
          const bytesEach = (): number => Math.ceil(random() * 2 * (sizeBytes / (cuts + 1))) + 1
          const first = yield* cuttingProxy(port, cuts, bytesEach)
          const curl = [
            "-fsS",
            "-H",
            header,
            "-C",
            "-",
            "-o",
            byCurl,
            `http://127.0.0.1:${first.port}${path}`
          ]
          while ((yield* run("curl", curl)) !== 0 && statSync(byCurl).size < sizeBytes);
          assert.isAbove(first.cuts, cuts / 3)
          assert.strictEqual(yield* sha256Of(byCurl), yield* sha256Of(whole))

          const second = yield* cuttingProxy(port, cuts, bytesEach)
          const wget = ["-q", "-c", "-t", "0", "--waitretry=0", "--header", header, "-O", byWget]
          assert.strictEqual(yield* run("wget", [...wget, `http://127.0.0.1:${second.port}${path}`]), 0)
          assert.isAbove(second.cuts, cuts / 3)
          assert.strictEqual(yield* sha256Of(byWget), yield* sha256Of(whole))
        }).pipe(Effect.scoped),
      timeoutMillis
    )
  })
})
