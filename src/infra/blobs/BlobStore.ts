import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { type BlobAppends, makeAppends } from "./BlobAppends.ts"
import { BlobDirectory, type BlobsUnusable } from "./BlobDirectory.ts"
import { BlobFiles, type OpenBlobFile, wrongHash } from "./BlobFiles.ts"
import { type Blob, BlobIndex, type NewBlob, type Owner, type Reference } from "./BlobIndex.ts"
import { BlobParts } from "./BlobParts.ts"
import { type BlobUpkeep, makeUpkeep } from "./BlobUpkeep.ts"
import { makeUploads } from "./BlobStaging.ts"
import type { BlobUploads } from "./BlobUploads.ts"
import type { DiskFull } from "./Disk.ts"
import { sumsOf } from "./RunningSums.ts"

interface Service extends BlobUploads, BlobAppends {
  /** The directory's id: blobs of another one cannot be read here. */
  readonly id: string
  readonly directory: string
  /** A record refers to a blob, in the caller's transaction; `ref` names the record. */
  readonly refer: (ref: string, blob: Blob | NewBlob, owner: Owner) => Effect.Effect<void, SqlError>
  /** The record is gone, in the caller's transaction. */
  readonly release: (ref: string) => Effect.Effect<void, SqlError>
  /** Several records at once; a transaction that has more than one does it so, behind all else that it locks. */
  readonly referAll: (references: ReadonlyArray<Reference>, owner: Owner) => Effect.Effect<void, SqlError>
  readonly releaseAll: (refs: ReadonlyArray<string>) => Effect.Effect<void, SqlError>
  /** A descriptor of a blob's bytes, which is the caller's to close. Fails, and notes it, where the file is not whole. */
  readonly open: (blob: Blob) => Effect.Effect<number, ServiceUnavailable>
  /** The bytes of a short blob, which are compared with the hash. */
  readonly read: (blob: Blob) => Effect.Effect<Buffer, ServiceUnavailable>
  /** A reader of parts of many blobs, which is the caller's to close. */
  readonly parts: () => BlobParts
  /** The CRC-32 of a blob of which none is known, by reading it; it is kept. */
  readonly sum: (blob: Blob) => Effect.Effect<number, ServiceUnavailable | SqlError>
  /**
   * Makes a blob of a file elsewhere, which is left there, with a record that refers to it. The hash is checked later.
   * Answers undefined where there is no such file.
   */
  readonly adopt: <A, E, R>(
    path: string,
    blob: Blob,
    commit: (blob: Blob) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A | undefined, E | DiskFull | SqlError, R>
  readonly upkeep: BlobUpkeep
}

/**
 * Bytes, kept once by their content, on disk and in Postgres. A blob lives as long as records refer to it, and a day longer.
 * Its file is there before its row, and goes after it, both under one lock: an accepted record never lacks its bytes.
 * Source: src/docs/decisions/0029-blobs.md.
 */
export class BlobStore extends Context.Service<BlobStore, Service>()("signalbox/infra/BlobStore") {
  static readonly layer: Layer.Layer<BlobStore, BlobsUnusable | SqlError, AppConfig | SqlClient> =
    Layer.effect(
      BlobStore,
      Effect.flatMap(AppConfig, ({ blobsDirectory, dataDir }) =>
        BlobStore.in(blobsDirectory ?? join(dataDir, "blobs"))
      )
    )

  /** The store of a directory; each directory has one in a process. */
  static readonly in = (
    directory: string
  ): Effect.Effect<BlobStore["Service"], BlobsUnusable | SqlError, AppConfig | SqlClient> => make(directory)
}

const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

export const openNew: OpenBlobFile = (path, flags) => fs.open(path, flags, 0o600)

/** The opening of temporary files: the file system's, unless a test brings a disk with faults. */
export const OpenFile = Context.Reference<OpenBlobFile>("signalbox/infra/blobs/OpenFile", {
  defaultValue: () => openNew
})

const make = Effect.fnUntraced(function* (path: string) {
  const { filesMinFreeBytes, limits } = yield* AppConfig
  const sql = yield* SqlClient
  const directory = new BlobDirectory(path)
  const id = yield* directory.identify
  const files = new BlobFiles(directory, yield* OpenFile)
  const index = new BlobIndex(sql, id)
  const knownSince = yield* index.register
  const recognise = directory.recognise(id)
  const haveRoom = files.haveRoom(0, filesMinFreeBytes)
  const upkeep = makeUpkeep({ files, index, sql, limits, recognise, haveRoom, knownSince })
  const parts = {
    files,
    index,
    sql,
    minFreeBytes: filesMinFreeBytes,
    rowBytes: limits.shortFileBytes,
    onPublished: upkeep.forgive
  }
  const uploads = makeUploads({ ...parts, putKeptMillis: limits.putKeptMillis })
  const appends = makeAppends({ ...parts, limits })
  return BlobStore.of({
    ...uploads,
    ...appends,
    id,
    directory: directory.path,
    refer: (ref, blob, owner) => index.refer(ref, blob, owner),
    release: (ref) => index.release(ref),
    referAll: (references, owner) => index.referAll(references, owner),
    releaseAll: (refs) => index.releaseAll(refs),
    ...reading({ ...parts, upkeep, run: Effect.runForkWith(yield* Effect.context<never>()) }),
    adopt: (path, blob, commit) =>
      Effect.gen(function* () {
        yield* index.lock(blob.sha256)
        if (!(yield* files.take(path, blob))) return undefined
        yield* index.noteUnseen(blob)
        return yield* commit(blob)
      }).pipe(sql.withTransaction),
    upkeep
  })
})

interface Reading {
  readonly files: BlobFiles
  readonly index: BlobIndex
  readonly upkeep: BlobUpkeep
  /** shorter blobs may live in their rows */
  readonly rowBytes: number
  readonly run: (effect: Effect.Effect<void>) => void
}

const reading = ({
  files,
  index,
  rowBytes,
  run,
  upkeep
}: Reading): Pick<Service, "open" | "read" | "parts" | "sum"> => {
  /** The bytes of a blob that lives in its row. */
  const inRow = ({ sha256, sizeBytes }: Blob) =>
    sizeBytes > rowBytes
      ? Effect.succeed(undefined)
      : Effect.map(storeAway(index.rowsOf([sha256])), (rows) => {
          const bytes = rows.get(sha256)
          return bytes && bufferOf(bytes)
        })
  return {
    open: (blob) => Effect.catch(files.open(blob), (problem) => upkeep.refuse(blob, problem)),
    read: (blob) =>
      Effect.catch(files.read(blob), (problem) =>
        Effect.flatMap(inRow(blob), (bytes) => {
          if (bytes === undefined) return upkeep.refuse(blob, problem)
          return sumsOf(bytes).sha256 === blob.sha256 ? Effect.succeed(bytes) : upkeep.refuse(blob, wrongHash)
        })
      ),
    parts: () =>
      new BlobParts(
        (sha256) => files.pathOf(sha256),
        rowBytes,
        (hashes, done) =>
          run(
            Effect.matchCause(index.rowsOf(hashes), {
              onFailure: (cause) => done(new Error("The rows of blobs cannot be read", { cause })),
              onSuccess: done
            })
          )
      ),
    sum: (blob) =>
      Effect.catch(files.check(blob), (problem) => upkeep.refuse(blob, problem)).pipe(
        Effect.tap((seen) => index.seen(seen)),
        Effect.map(({ crc32 }) => crc32)
      )
  }
}
