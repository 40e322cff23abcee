import { Effect, Result } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { Limits } from "#src/Limits.ts"
import type { BlobsUnusable } from "./BlobDirectory.ts"
import type { BlobFiles } from "./BlobFiles.ts"
import type { DiskFull } from "./Disk.ts"
import type { Blob, BlobCounts, BlobIndex } from "./BlobIndex.ts"

/** The work on blobs beside requests, and what is known of damaged ones. */
export interface BlobUpkeep {
  /** Ends references that have expired, and removes blobs that nothing refers to, files without a row, and uploads left. */
  readonly collect: Effect.Effect<
    { readonly blobs: number; readonly files: number },
    SqlError | BlobsUnusable
  >
  /** Reads the bytes of blobs that were not read for long, and notes those that are missing or damaged. */
  readonly scrub: Effect.Effect<
    { readonly checked: number; readonly damaged: number },
    SqlError | BlobsUnusable
  >
  /** Refuses a reader of a blob whose file has this problem, which is noted. */
  readonly refuse: (blob: Blob, problem: string) => Effect.Effect<never, ServiceUnavailable>
  /** A blob's bytes have come again. */
  readonly forgive: (sha256: string) => void
  readonly counts: Effect.Effect<BlobCounts, SqlError>
  /** blobs that are known to be damaged or missing */
  readonly damaged: Effect.Effect<number, SqlError>
  readonly recognise: Effect.Effect<void, BlobsUnusable>
  /** Fails where uploads are refused, as too little room is left. */
  readonly haveRoom: Effect.Effect<void, DiskFull>
  /** of this process, since its start */
  readonly totals: { collected: number; damaged: number; checkedBytes: number }
}

interface Parts {
  readonly files: BlobFiles
  readonly index: BlobIndex
  readonly sql: SqlClient
  readonly limits: Limits
  /** Fails where the directory is not the one of the start: its disk is not mounted, say. */
  readonly recognise: Effect.Effect<void, BlobsUnusable>
  readonly haveRoom: Effect.Effect<void, DiskFull>
  /** milliseconds since 1970; files from before are not this database's, and stay */
  readonly knownSince: number
}

/** To readers of bytes that are damaged or missing. */
export const damagedBytes = ServiceUnavailable.of(
  "The file's bytes are damaged or missing on the server's disk; it can be read again once they were uploaded again"
)

/** Blobs, uploads and references that are asked for at a time. */
const atOnce = 200

/** Blobs that this process has told of in its log. */
const toldMost = 10_000

export const makeUpkeep = (parts: Parts): BlobUpkeep => {
  const totals = { collected: 0, damaged: 0, checkedBytes: 0 }
  const told = new Set<string>()

  /** Under the lock under which the file would come or go, so that one that does so now is not taken for damaged. */
  const confirm = ({ files, index, sql }: Parts, blob: Blob, look: Effect.Effect<unknown, string>) =>
    Effect.gen(function* () {
      yield* index.lock(blob.sha256)
      const problem = yield* Effect.match(look, { onFailure: (text) => text, onSuccess: () => undefined })
      const isKnown = yield* index.checked(blob.sha256, problem !== undefined)
      return isKnown ? problem : undefined
    }).pipe(
      sql.withTransaction,
      Effect.tap((problem) => {
        if (problem === undefined || told.has(blob.sha256)) return Effect.void
        if (told.size >= toldMost) told.clear()
        told.add(blob.sha256)
        totals.damaged++
        const { sha256 } = blob
        return Effect.annotateLogs(Effect.logError("The bytes of a blob are damaged or missing"), {
          sha256,
          path: files.pathOf(sha256),
          problem
        })
      })
    )

  const refuse = Effect.fnUntraced(function* (blob: Blob, problem: string) {
    const { files, recognise } = parts
    const look = problem.endsWith("hash") ? files.check(blob) : Effect.flatMap(files.open(blob), files.close)
    yield* Effect.andThen(recognise, storeAway(confirm(parts, blob, look))).pipe(
      Effect.catch((error) =>
        Effect.annotateLogs(Effect.logError("A blob cannot be read, and that was not written down", error), {
          sha256: blob.sha256,
          problem
        })
      )
    )
    return yield* damagedBytes
  })

  return {
    totals,
    refuse,
    forgive: (sha256) => void told.delete(sha256),
    counts: parts.index.counts,
    damaged: parts.index.damaged,
    recognise: parts.recognise,
    haveRoom: parts.haveRoom,
    collect: Effect.tap(collecting(parts), ({ blobs, files }) =>
      Effect.sync(() => {
        totals.collected += blobs + files
      })
    ),
    scrub: scrubbing(parts, (blob, look) => confirm(parts, blob, look), totals)
  }
}

/** Ends uploads that nothing goes on with, and removes files of none. */
const endUploads = ({ files, index, limits }: Parts) =>
  Effect.gen(function* () {
    for (const upload of yield* index.endExpired) yield* files.discard(upload)
    const names = yield* files.foundTemporary(Date.now() - limits.uploadKeptMillis)
    for (let from = 0; from < names.length; from += atOnce) {
      const some = names.slice(from, from + atOnce)
      const live = yield* index.underWay(some.map(uploadOf))
      for (const name of some) if (!live.has(uploadOf(name))) yield* files.discardNamed(name)
    }
  })

/** Removes the file of a hash that has no row; false: it has one, or there is no file. */
const removeFile = Effect.fnUntraced(function* ({ files, index, sql }: Parts, sha256: string) {
  const aside = yield* Effect.gen(function* () {
    yield* index.lock(sha256)
    if (yield* index.has(sha256)) return undefined
    const name = yield* files.setAside(sha256)
    if (name === undefined) return undefined
    // The transaction still answers, and so it had the lock until now.
    yield* Effect.onError(index.has(sha256), () => files.putBack(name, sha256))
    return name
  }).pipe(sql.withTransaction)
  if (aside !== undefined) yield* files.discardNamed(aside)
  return aside !== undefined
})

/** Removes blobs that nothing has referred to for long; answers how many. */
const removeUnreferenced = (parts: Parts) =>
  Effect.gen(function* () {
    const { index, sql } = parts
    const keptMillis = parts.limits.blobKeptMillis
    for (let removed = 0; ;) {
      const found = yield* index.unreferenced(keptMillis, atOnce)
      for (const sha256 of found) {
        // The row goes first, and is committed: a crash between the two leaves a file without a row, never the reverse.
        const forgotten = Effect.andThen(index.lock(sha256), index.forget(sha256, keptMillis))
        if (!(yield* sql.withTransaction(forgotten))) continue
        yield* removeFile(parts, sha256)
        removed++
      }
      if (found.length < atOnce) return removed
    }
  })

/** Removes files that have had no row for long; answers how many. */
const removeStrays = (parts: Parts) =>
  Effect.gen(function* () {
    const { files, index, knownSince, limits } = parts
    let removed = 0
    for (let byte = 0; byte < 256; byte++) {
      const folder = byte.toString(16).padStart(2, "0")
      const found = yield* files.found(folder)
      if (found.length === 0) continue
      const named = yield* index.inFolder(folder)
      const strays = found.filter((sha256) => !named.has(sha256))
      for (const sha256 of yield* files.within(strays, knownSince, Date.now() - limits.blobKeptMillis))
        if (yield* removeFile(parts, sha256)) removed++
    }
    return removed
  })

const collecting = (parts: Parts) =>
  Effect.gen(function* () {
    const { index, recognise } = parts
    yield* recognise
    yield* endUploads(parts)
    for (;;) {
      const expired = yield* index.expired(atOnce)
      for (const ref of expired) yield* index.release(ref)
      if (expired.length < atOnce) break
    }
    return { blobs: yield* removeUnreferenced(parts), files: yield* removeStrays(parts) }
  })

/** The upload that a temporary file is of. */
const uploadOf = (name: string): string => name.slice(0, name.lastIndexOf("."))

const scrubbing = (
  { files, index, limits, recognise }: Parts,
  confirm: (blob: Blob, look: Effect.Effect<unknown, string>) => Effect.Effect<string | undefined, SqlError>,
  totals: BlobUpkeep["totals"]
) =>
  Effect.gen(function* () {
    let checked = 0
    let damaged = 0
    for (;;) {
      const found = yield* index.unchecked(limits.blobCheckMillis, atOnce)
      for (const blob of found) {
        yield* recognise
        const { sizeBytes } = blob
        // A large one is read faster, so that a sweep comes to its end.
        const rate = Math.max(limits.blobCheckBytesPerSecond, (2_000 * sizeBytes) / limits.sweepMillis)
        const inRow = sizeBytes > limits.shortFileBytes ? undefined : yield* index.checkRow(blob.sha256)
        const seen = inRow === undefined ? yield* Effect.result(files.check(blob, rate)) : undefined
        if (seen === undefined) damaged += inRow?.isDamaged === true ? 1 : 0
        else if (Result.isSuccess(seen)) yield* index.seen(seen.success)
        else if ((yield* confirm(blob, files.check(blob))) !== undefined) damaged++
        checked++
        totals.checkedBytes += sizeBytes
      }
      if (found.length < atOnce) return { checked, damaged }
    }
  })
