import { Data, Effect, type Scope, Semaphore } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ServiceUnavailable, UnprocessableContent } from "#schemas/core/Problem.ts"
import { type ArchivePlan, ArchivePlanner } from "#streams/files/archive/ArchivePlan.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import type { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Limits } from "#src/Limits.ts"
import type { Buckets } from "../access/Reach.ts"
import type { Directory } from "../tree/Tree.ts"
import type { Walk } from "../tree/Walk.ts"
import { type EntryRow, makeEntries } from "./ArchiveEntries.ts"

/** A directory, or all buckets of a user that may be read. */
export type ArchivePlace =
  | { readonly directory: Directory }
  | { readonly rootOf: string; readonly readable: Buckets }

interface Parts {
  readonly sql: SqlClient
  readonly walk: Walk["Service"]
  readonly blobs: BlobStore["Service"]
  readonly limits: Limits
}

type Entries = ReturnType<typeof makeEntries>

/** Blobs of which no CRC-32 is known. */
class Unsummed extends Data.TaggedError("Unsummed")<{ readonly blobs: ReadonlyArray<Blob> }> {}

export const unreadable = (path: string): ServiceUnavailable =>
  ServiceUnavailable.of(
    `${path}: the file's bytes are damaged or missing on the server's disk, so that there is no archive with it`
  )

const busy = ServiceUnavailable.of("Too many large archives are being made; try again later")

/** The memory of one plan, which its scope holds, and each answer out of it. */
export class PlanMemory {
  private readonly shares: FairShares
  private readonly userId: string
  private bytes = 0
  private holders = 1

  constructor(shares: FairShares, userId: string) {
    this.shares = shares
    this.userId = userId
  }

  /** False: so many bytes in all would be more than the user's share. */
  grow(bytes: number): boolean {
    const more = bytes - this.bytes
    if (more > 0 && !this.shares.take(this.userId, more)) return false
    this.bytes = Math.max(this.bytes, bytes)
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

/** Adds one directory, with all that is below it, to a plan. `all`: its entries, where they are known already. */
const adding = ({ blobs, limits }: Parts, { paged }: Entries) => {
  const tooMany = UnprocessableContent.of(
    `An archive has at most ${limits.archiveEntries} entries: get the directories in it one by one`,
    { code: "archive_too_large" }
  )
  return Effect.fnUntraced(function* (
    planner: ArchivePlanner,
    memory: PlanMemory,
    directory: Directory,
    all?: ReadonlyArray<EntryRow>
  ) {
    const top = `${directory.name}/`
    planner.add({ path: top, modifiedSeconds: Math.floor(directory.modifiedAt.getTime() / 1000) })
    const add = Effect.fnUntraced(function* (rows: ReadonlyArray<EntryRow>) {
      const unsummed: Array<Blob> = []
      for (const { crc32, damaged, modifiedSeconds, path: within, sha256, sizeBytes, store } of rows) {
        const path = top + within.slice(directory.path.length)
        if (sha256 === null) planner.add({ path, modifiedSeconds })
        else if (damaged || store !== blobs.id) return yield* unreadable(path)
        else if (crc32 === null) unsummed.push({ sha256: Buffer.from(sha256).toString("hex"), sizeBytes })
        else planner.add({ path, modifiedSeconds, content: { sha256, sizeBytes, crc32 } })
      }
      if (unsummed.length > 0) return yield* new Unsummed({ blobs: unsummed })
      if (planner.entries > limits.archiveEntries) return yield* tooMany
      if (!memory.grow(planner.heldBytes)) return yield* busy
    })
    yield* all === undefined ? paged(directory, add) : add(all)
  })
}

/** Makes plans of archives, each of one snapshot of a directory. */
export const makePlans = Effect.fnUntraced(function* (parts: Parts) {
  const { blobs, limits, sql, walk } = parts
  const entries = makeEntries(sql, limits.walkEntriesAtOnce)
  const add = adding(parts, entries)
  const shares = new FairShares(limits.archivePlansBytes)
  const atOnce = yield* Semaphore.make(limits.archivePlansAtOnce)
  let underWay = 0

  const planned = Effect.fnUntraced(function* (place: ArchivePlace, memory: PlanMemory) {
    const planner = new ArchivePlanner()
    const all = "directory" in place ? yield* entries.atOnce(place.directory) : undefined
    const reads = Effect.gen(function* () {
      if ("directory" in place) return yield* add(planner, memory, place.directory, all)
      const { readable, rootOf } = place
      for (const bucket of yield* walk.buckets(rootOf)) {
        if (readable === "all" || readable.has(bucket.name)) yield* add(planner, memory, bucket)
      }
    })
    yield* all === undefined ? walk.snapshot(reads) : reads
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

  return Effect.fnUntraced(function* (
    place: ArchivePlace
  ): Effect.fn.Return<
    { readonly plan: ArchivePlan; readonly memory: PlanMemory },
    ServiceUnavailable | UnprocessableContent,
    Scope.Scope
  > {
    const userId = "directory" in place ? place.directory.userId : place.rootOf
    const memory = yield* Effect.acquireRelease(
      Effect.sync(() => new PlanMemory(shares, userId)),
      (held) => Effect.sync(() => held.release())
    )
    if (underWay >= limits.archivePlansUnderWay) return yield* busy
    underWay++
    const plan = yield* storeAwayUntimed(summed(place, memory)).pipe(
      atOnce.withPermits(1),
      Effect.timeoutOrElse({ duration: limits.archivePlanMillis, orElse: () => Effect.fail(busy) }),
      Effect.ensuring(Effect.sync(() => underWay--))
    )
    return { plan, memory }
  })
})
