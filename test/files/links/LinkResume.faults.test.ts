import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { ShareLink, SharedLink } from "#schemas/files/ShareLink.ts"
import { cuttingProxy } from "#test/harness/CuttingProxy.ts"
import { describeWith, requirement } from "#test/harness/Requirement.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { live, uploaded } from "../transfers/TransferSteps.ts"
import { direct, until } from "./LinkSteps.ts"

/** Of the file; by hand also 2048, with 50 cuts. */
const mebibytes = Number(process.env["LINK_MIB"] ?? 24)
const cuts = Number(process.env["LINK_CUTS"] ?? 10)

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

const sha256Of = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex")
const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0)

describeWith(programs, "a capped link whose download is cut", () => {
  layer(TestServer.own(), { ...live, timeout: "300 seconds" })((it) => {
    for (const kind of ["file", "directory"] as const)
      it.effect(`to a ${kind} is gone on with by curl -C - and wget -c, byte for byte, and counts once`, () =>
        Effect.gen(function* () {
          const { ask, makeUser, port } = yield* TestServer
          const { key } = yield* makeUser()
          const bytes = Buffer.alloc(mebibytes * 2 ** 20)
          for (let at = 0; at < bytes.length; at += 8) bytes.writeDoubleLE(at * Math.PI, at)
          const file = yield* uploaded(["large.bin", bytes], { dir: "large" }, { key })
          const target = kind === "file" ? { fileId: file.fileId } : { directoryId: file.directoryId }
          const made = yield* ask("POST", "/api/share-links", { key, json: { ...target, maxRequests: 2 } })
          const { token } = made.json as ShareLink
          const head = yield* direct(token, { method: "HEAD" })
          const sizeBytes = Number(head.headers.get("content-length"))
          const to = mkdtempSync(join(tmpdir(), "link-"))
          yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(to, { recursive: true })))
          const random = seededRandom(kind === "file" ? 3 : 4)
          const bytesEach = (): number => Math.ceil(random() * 2 * (sizeBytes / (cuts + 1))) + 4_096

          const byCurl = join(to, "curl")
          const first = yield* cuttingProxy(port, cuts, bytesEach)
          const curl = ["-fsS", "-C", "-", "-o", byCurl, `http://127.0.0.1:${first.port}/direct/${token}`]
          let tries = 0
          while ((yield* run("curl", curl)) !== 0 && sizeOf(byCurl) < sizeBytes)
            assert.isBelow(tries++, cuts + 5)
          assert.isAbove(first.cuts, cuts / 3)
          const byWget = join(to, "wget")
          const second = yield* cuttingProxy(port, cuts, bytesEach)
          const wget = ["-q", "-c", "-t", "0", "--waitretry=0", "-O", byWget]
          const status = yield* run("wget", [...wget, `http://127.0.0.1:${second.port}/direct/${token}`])
          assert.strictEqual(status, 0)
          assert.isAbove(second.cuts, cuts / 3)
          assert.strictEqual(sizeOf(byCurl), sizeBytes)
          assert.strictEqual(sha256Of(byCurl), sha256Of(byWget))
          if (kind === "file") assert.strictEqual(sha256Of(byCurl), file.fileHash)

          const read = Effect.map(
            ask("GET", `/api/share-links/${token}`, { key }),
            ({ json }) => json as SharedLink
          )
          yield* until(Effect.map(read, ({ downloads }) => downloads.every(({ complete }) => complete)))
          const { downloads, uses } = yield* read
          assert.deepStrictEqual([uses, downloads.length], [2, 2])
          assert.strictEqual((yield* direct(token)).status, 410)
        }).pipe(Effect.scoped)
      )
  })
})
