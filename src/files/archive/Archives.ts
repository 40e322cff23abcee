import { close } from "node:fs"
import { Context, Data, Effect, Layer, type Scope, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable, UnprocessableContent } from "#schemas/core/Problem.ts"
import { type ArchivePlan, ArchivePlanner } from "#streams/files/archive/ArchivePlan.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { FileSent } from "#src/front/RawRoute.ts"
import { byteAnswer } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Buckets } from "../access/Reach.ts"
import type { Directory } from "../tree/Tree.ts"
import { Walk } from "../tree/Walk.ts"
import { type EntryRow, makeEntries } from "./ArchiveEntries.ts"
import { ArchiveSource } from "./ArchiveSource.ts"

/** A directory, or all buckets of a user that may be read. */
export type ArchivePlace =
  | { readonly directory: Directory }
  | { readonly rootOf: string; readonly readable: Buckets }

interface SendOptions {
  /** more headers of the answer, or others in the place of its own, by their lower-case names */
  readonly headers?: Readonly<Record<string, string>>
  readonly sent?: FileSent
}

/** An archive of which everything is known but the bytes of its files. */
export interface PlannedArchive {
  readonly filename: string
  readonly sizeBytes: number
  readonly entries: number
  /** strong, with its quotes */
  readonly etag: string
  /** Answers a GET or HEAD with it: the whole, one range, 304 or 416. */
  readonly send: (exchange: KeyedExchange, options?: SendOptions) => Effect.Effect<void>
}

/** Archives of directories, made as they are sent. Source: contract/files#archives. */
export class Archives extends Context.Service<
  Archives,
  {
    /**
     * What a directory has now, in one snapshot. It takes memory until the scope ends, or what was sent of it by then. Fails where
     * it has too many entries, or bytes that are damaged.
     */
    readonly plan: (
      place: ArchivePlace
    ) => Effect.Effect<PlannedArchive, ServiceUnavailable | UnprocessableContent, Scope.Scope>
  }
>()("signalbox/files/Archives") {
  static readonly layer = Layer.effect(
    Archives,
    Effect.suspend(() => make)
  )
}

/** Blobs of which no CRC-32 is known. */
class Unsummed extends Data.TaggedError("Unsummed")<{ readonly blobs: ReadonlyArray<Blob> }> {}

const unreadable = (path: string): ServiceUnavailable =>
  ServiceUnavailable.of(
    `${path}: the file's bytes are damaged or missing on the server's disk, so that there is no archive with it`
  )

/** Memory of one plan, which is held by its scope and by each answer out of it. */
class PlanMemory {
  private readonly shares: FairShares
  private readonly userId: string
  private bytes = 0
  private holders = 1

  constructor(shares: FairShares, userId: string) {
    this.shares = shares
    this.userId = userId
  }

  /** False: it would be more than the user's share. */
  grow(bytes: number): boolean {
    const more = bytes - this.bytes
    if (more > 0 && !this.shares.take(this.userId, more)) return false
    this.bytes = bytes
    return true
  }

  hold(): void {
    this.holders++
  }

  release(): void {
    this.holders--
    if (this.holders === 0) this.shares.release(this.userId, this.bytes)
  }
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const walk = yield* Walk
  const blobs = yield* BlobStore
  const { limits } = yield* AppConfig
  const below = makeEntries(sql, limits.walkEntriesAtOnce)
  const shares = new FairShares(limits.archivePlansBytes)
  const atOnce = yield* Semaphore.make(limits.archivePlansAtOnce)
  const run = Effect.runForkWith(yield* Effect.context<never>())

  const tooMany = UnprocessableContent.of(
    `An archive has at most ${limits.archiveEntries} entries: get the directories in it one by one`,
    { code: "archive_too_large" }
  )
  const busy = ServiceUnavailable.of("Too many large archives are being sent; try again later")

  /** One directory with all that is below it. */
  const addDirectory = Effect.fnUntraced(function* (
    planner: ArchivePlanner,
    memory: PlanMemory,
    directory: Directory
  ) {
    const top = `${directory.name}/`
    const topSeconds = Math.floor(directory.modifiedAt.getTime() / 1000)
    planner.add({ path: top, modifiedSeconds: topSeconds })
    const add = Effect.fnUntraced(function* (rows: ReadonlyArray<EntryRow>) {
      const unsummed: Array<Blob> = []
      for (const row of rows) {
        const { crc32, damaged, modifiedSeconds, sha256, sizeBytes, store } = row
        const path = top + row.path.slice(directory.path.length)
        if (sha256 === null) planner.add({ path, modifiedSeconds })
        else if (damaged || store !== blobs.id) return yield* unreadable(path)
        else if (crc32 === null) unsummed.push({ sha256: Buffer.from(sha256).toString("hex"), sizeBytes })
        else planner.add({ path, modifiedSeconds, content: { sha256, sizeBytes, crc32 } })
      }
      if (unsummed.length > 0) return yield* new Unsummed({ blobs: unsummed })
      if (planner.entries > limits.archiveEntries) return yield* tooMany
      if (!memory.grow(planner.heldBytes)) return yield* busy
    })
    yield* below(directory, add)
  })

  const planned = Effect.fnUntraced(function* (place: ArchivePlace, memory: PlanMemory) {
    const planner = new ArchivePlanner()
    const adding = Effect.gen(function* () {
      if ("directory" in place) return yield* addDirectory(planner, memory, place.directory)
      const { readable, rootOf } = place
      for (const bucket of yield* walk.buckets(rootOf)) {
        if (readable === "all" || readable.has(bucket.name)) yield* addDirectory(planner, memory, bucket)
      }
    })
    yield* walk.snapshot(adding)
    return planner.finish()
  })

  /** Sums that are not known are computed between two tries, and are known from then on. */
  const summed = (
    place: ArchivePlace,
    memory: PlanMemory
  ): Effect.Effect<ArchivePlan, ServiceUnavailable | UnprocessableContent | SqlError> =>
    Effect.catchTag(planned(place, memory), "Unsummed", ({ blobs: unsummed }) =>
      Effect.andThen(
        Effect.forEach(unsummed, (blob) => blobs.sum(blob), { discard: true }),
        Effect.suspend(() => summed(place, memory))
      )
    )

  /** The file is looked at, so that its damage is known. */
  const noteDamage = (blob: Blob): void =>
    void run(
      Effect.match(blobs.open(blob), {
        onFailure: () => undefined,
        onSuccess: (fd) => close(fd, () => undefined)
      })
    )

  const sending =
    (plan: ArchivePlan, filename: string, memory: PlanMemory): PlannedArchive["send"] =>
    (exchange, { headers: own, sent } = {}) =>
      Effect.sync(() => {
        const { request } = exchange
        const { headers, range, status } = byteAnswer(
          { method: request.method, header: (name) => request.header(name) },
          {
            sizeBytes: plan.sizeBytes,
            contentType: "application/x-gzip",
            etag: `"${plan.digest}"`,
            headers: {
              "content-disposition": contentDisposition("attachment", filename),
              "cache-control": "private, no-cache",
              "cross-origin-resource-policy": "same-origin",
              ...own
            }
          }
        )
        if (range === undefined) {
          const told = Object.entries(headers).filter(([name]) => name !== "content-type")
          return exchange.send(status, told)
        }
        memory.hold()
        const ends = {
          onTrouble: ({ blob }: { readonly blob: Blob }) => noteDamage(blob),
          onClose: () => memory.release()
        }
        const source = new ArchiveSource(plan, range, blobs.parts(), ends)
        exchange.sendSource(status, Object.entries(headers), source, sent)
      })

  return Archives.of({
    plan: Effect.fnUntraced(function* (place) {
      const userId = "directory" in place ? place.directory.userId : place.rootOf
      const filename = `${"directory" in place ? place.directory.name : "files"}.tgz`
      const memory = yield* Effect.acquireRelease(
        Effect.sync(() => new PlanMemory(shares, userId)),
        (held) => Effect.sync(() => held.release())
      )
      const plan = yield* storeAwayUntimed(summed(place, memory)).pipe(
        Effect.timeoutOrElse({ duration: limits.archivePlanMillis, orElse: () => Effect.fail(busy) }),
        atOnce.withPermits(1)
      )
      const { digest, entries, sizeBytes } = plan
      return { filename, sizeBytes, entries, etag: `"${digest}"`, send: sending(plan, filename, memory) }
    })
  })
})
