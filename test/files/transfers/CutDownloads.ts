import { createHash, randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Result } from "effect"
import type { ShareLink, SharedLink } from "#schemas/files/ShareLink.ts"
import { Versions } from "#src/files/tree/Versions.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { cuttingProxy } from "#test/harness/CuttingProxy.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { TestServer } from "#test/harness/TestServer.ts"
import { incoming } from "#test/infra/blobs/BlobSteps.ts"
import { until } from "../links/LinkSteps.ts"
import { ensured, plain, treeLayer } from "../tree/TreeSteps.ts"

/** Of the file, and of the directory; by hand also `DOWNLOAD_MIB=2048` with `DOWNLOAD_CUTS=50`. */
export const mebibytes = Number(process.env["DOWNLOAD_MIB"] ?? 24)
export const cuts = Number(process.env["DOWNLOAD_CUTS"] ?? 8)

export const timeout = { timeout: 120_000 + 1_000 * mebibytes } as const

export const served = treeLayer.pipe(Layer.provideMerge(TestServer.own()))

const mebibyte = 2 ** 20

export const hashOf = async (pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<string> => {
  const hash = createHash("sha256")
  for await (const piece of pieces) hash.update(piece)
  return hash.digest("hex")
}

/** A directory that ends with the scope. */
export const ownDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "downloads-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A large file in a directory of its own, or a directory of files of a mebibyte, of a new user. */
export const madeLarge = Effect.fnUntraced(function* (kind: "file" | "directory") {
  const { makeUser, url } = yield* TestServer
  const blobs = yield* BlobStore
  const { write } = yield* Versions
  const { id: userId, key } = yield* makeUser()
  const directory = yield* ensured(userId, "folder")
  const make = (name: string, size: number) => {
    let left = size
    const source = async () => Result.succeed(left-- > 0 ? randomBytes(mebibyte) : undefined)
    return blobs.put(incoming(userId, null, size * mebibyte), source, (blob) =>
      write(userId, "test", { ...plain, directory, name, blob })
    )
  }
  const names = kind === "file" ? ["large.bin"] : Array.from({ length: mebibytes }, (_, n) => `${n}`)
  let fileId = ""
  for (const name of names) fileId = (yield* make(name, mebibytes / names.length)).id
  const path = kind === "file" ? `/api/files/${fileId}` : `/api/download/${directory.id}`
  const headers = { authorization: `Bearer ${key}` }
  const sha256 = yield* Effect.promise(async () => hashOf((await fetch(url + path, { headers })).body ?? []))
  return { key, path, sha256, target: kind === "file" ? { fileId } : { directoryId: directory.id } }
})

/** A proxy that cuts the download of this path so often, each time at a random byte. */
export const cutting = Effect.fnUntraced(function* (path: string, key: string, seed: number) {
  const { ask, port } = yield* TestServer
  const head = yield* ask("HEAD", path, { key })
  const sizeBytes = Number(head.headers.get("content-length"))
  const random = seededRandom(seed)
  return yield* cuttingProxy(port, cuts, () => Math.ceil(random() * 2 * (sizeBytes / (cuts + 1))) + 4_096)
})

/** A link that may be used so often. */
export const cappedLink = (key: string, target: object, maxRequests: number) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(
      ask("POST", "/api/share-links", { key, json: { ...target, maxRequests } }),
      ({ json }) => (json as ShareLink).token
    )
  )

/** How often a link was used, once all of its downloads have come to their ends, and whether it is exhausted. */
export const endOf = (key: string, token: string) =>
  Effect.gen(function* () {
    const { ask } = yield* TestServer
    const read = Effect.map(
      ask("GET", `/api/share-links/${token}`, { key }),
      ({ json }) => json as SharedLink
    )
    yield* until(Effect.map(read, ({ downloads }) => downloads.every(({ complete }) => complete)))
    const { downloads, uses } = yield* read
    const { status } = yield* ask("GET", `/direct/${token}`, { key: "" })
    return { uses, downloads: downloads.length, status }
  })
