import { Data, Effect, type Scope } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type NotFound, ServiceUnavailable, UnprocessableContent } from "#schemas/core/Problem.ts"
import { type ArchivePlan, ArchivePlanner } from "#streams/files/archive/ArchivePlan.ts"
import { storeAwayUntimed } from "#src/http/StoreAway.ts"
import type { Blob } from "#src/infra/blobs/BlobIndex.ts"
import type { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import { GrowingShare } from "#src/infra/shares/GrowingShare.ts"
import { makeTurns } from "#src/infra/shares/Turns.ts"
import type { Limits } from "#src/Limits.ts"
import type { Buckets } from "../access/Reach.ts"
import type { Directory } from "../tree/Tree.ts"
import type { Walk } from "../tree/Walk.ts"
import { type EntryRow, makeEntries } from "./ArchiveEntries.ts"

interface OneDirectory {
  readonly directory: Directory
  /** the same, as its reader reaches it by then: it may move, or go, while the plan waits for its turn */
  readonly again: Effect.Effect<Directory, NotFound | SqlError>
}

/** All buckets of a user that may be read. */
interface Root {
  readonly rootOf: string
  readonly readable: Buckets
}

export type ArchivePlace = OneDirectory | Root

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

/** Adds one directory, with all that is below it, to a plan. `all`: its entries, where they are known already. */
const adding = ({ blobs, limits }: Parts, { paged }: Entries) => {
  const tooMany = UnprocessableContent.of(
    `An archive has at most ${limits.archiveEntries} entries: get the directories in it one by one`,
    { code: "archive_too_large" }
  )
  return Effect.fnUntraced(function* (
    planner: ArchivePlanner,
    memory: GrowingShare,
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

/** One try of a plan: of one snapshot. */
const planningOf = (parts: Parts) => {
  const { limits, sql, walk } = parts
  const entries = makeEntries(sql, limits.walkEntriesAtOnce)
  const add = adding(parts, entries)

  /** Answers the name that the directory has by then. */
  const ofDirectory = Effect.fnUntraced(function* (
    planner: ArchivePlanner,
    memory: GrowingShare,
    { again, directory }: OneDirectory
  ) {
    const inSnapshot = walk.snapshot(
      Effect.flatMap(again, (now) => Effect.as(add(planner, memory, now), now.name))
    )
    for (let seen = directory; ;) {
      const all = yield* entries.atOnce(seen)
      if (all === undefined) return yield* inSnapshot
      const now = yield* again
      // Where its row was not written in between, the entries are those of this place.
      if (now.changed === seen.changed) return yield* Effect.as(add(planner, memory, seen, all), seen.name)
      seen = now
    }
  })

  const ofRoot = (planner: ArchivePlanner, memory: GrowingShare, { readable, rootOf }: Root) =>
    walk.snapshot(
      Effect.gen(function* () {
        for (const bucket of yield* walk.buckets(rootOf)) {
          if (readable === "all" || readable.has(bucket.name)) yield* add(planner, memory, bucket)
        }
        return "files"
      })
    )

  return Effect.fnUntraced(function* (place: ArchivePlace, memory: GrowingShare) {
    const planner = new ArchivePlanner()
    const name = yield* "directory" in place
      ? ofDirectory(planner, memory, place)
      : ofRoot(planner, memory, place)
    return { name, plan: planner.finish() }
  })
}

interface NamedPlan {
  /** of the directory, or of all: `files` */
  readonly name: string
  readonly plan: ArchivePlan
}

type PlanFault = NotFound | ServiceUnavailable | UnprocessableContent

/** Makes plans of archives. */
export const makePlans = Effect.fnUntraced(function* (parts: Parts) {
  const { blobs, limits } = parts
  const planned = planningOf(parts)
  const shares = new FairShares(limits.archivePlansBytes)
  const inTurn = yield* makeTurns({
    atOnce: limits.archivePlansAtOnce,
    underWay: limits.archivePlansUnderWay,
    millis: limits.archivePlanMillis,
    busy
  })

  /** Sums that are not known are computed between two tries, and are known from then on. */
  const summed = (
    place: ArchivePlace,
    memory: GrowingShare
  ): Effect.Effect<NamedPlan, PlanFault | SqlError> =>
    Effect.catchTag(planned(place, memory), "Unsummed", ({ blobs: unsummed }) =>
      Effect.andThen(
        Effect.forEach(unsummed, (blob) => blobs.sum(blob), { discard: true }),
        Effect.suspend(() => summed(place, memory))
      )
    )

  return Effect.fnUntraced(function* (
    place: ArchivePlace
  ): Effect.fn.Return<NamedPlan & { readonly memory: GrowingShare }, PlanFault, Scope.Scope> {
    const userId = "directory" in place ? place.directory.userId : place.rootOf
    const memory = yield* Effect.acquireRelease(
      Effect.sync(() => new GrowingShare(shares, userId)),
      (held) => Effect.sync(() => held.release())
    )
    return { ...(yield* inTurn(storeAwayUntimed(summed(place, memory)))), memory }
  })
})
