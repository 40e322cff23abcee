import { Context, Deferred, Effect, FiberSet, Layer, Predicate } from "effect"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import type { Directory } from "#src/files/tree/Tree.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import { isRow, type StagedBlob, type StagedRow } from "#src/infra/blobs/BlobUploads.ts"
import type { NewBlob } from "#src/infra/blobs/BlobIndex.ts"
import type { Arrival, Failure } from "./Receiving.ts"
import { type ArrivedFile, UploadedFiles, type WrittenFile } from "./UploadedFiles.ts"

/** A file of a request, whose bytes are durable, or at hand. */
export interface ReceivedFile extends Omit<ArrivedFile, "blob"> {
  readonly staged: StagedBlob
}

/** The files of one request. */
export interface UploadRequest {
  readonly userId: string
  /** the way that they came */
  readonly source: string
  /** a directory, or the name of a bucket */
  readonly place: Directory | string
  readonly files: ReadonlyArray<ReceivedFile>
}

/**
 * Ends uploads: the files of a request become versions in one transaction. Those that come at once, into one place, with few
 * bytes and without a condition, share theirs: it takes as many statements, and one sync of the disk, for all of them. Where
 * it fails each has one of its own, so that no request fails for another one's fault.
 */
export class JoinedUploads extends Context.Service<
  JoinedUploads,
  {
    readonly publish: (
      arrival: Arrival,
      request: UploadRequest
    ) => Effect.Effect<ReadonlyArray<WrittenFile>, Failure>
  }
>()("signalbox/files/JoinedUploads") {
  static readonly layer = Layer.effect(
    JoinedUploads,
    Effect.suspend(() => make)
  )
}

/** Files that share a transaction. */
const filesMost = 128
/** Transactions of one place at a time: one gathers while the other is written. */
const atOnce = 2

/** A request with nothing but short blobs. */
interface Joinable extends UploadRequest {
  readonly files: ReadonlyArray<ReceivedFile & { readonly staged: StagedRow }>
}

interface Waiting {
  readonly request: Joinable
  readonly done: Deferred.Deferred<ReadonlyArray<WrittenFile>, Failure>
}

const isJoinable = (request: UploadRequest): request is Joinable =>
  request.files.length <= filesMost &&
  request.files.every(({ fields, staged }) => isRow(staged) && fields.ifVersion === null)

const laneOf = ({ place, source, userId }: UploadRequest): string =>
  `${userId} ${source} ${Predicate.isString(place) ? `name ${place}` : place.id}`

const filesOf = (
  { files }: UploadRequest,
  blobs: ReadonlyArray<NewBlob>,
  from = 0
): ReadonlyArray<ArrivedFile> =>
  files.flatMap((file, index) => {
    const blob = blobs[from + index]
    return blob === undefined ? [] : [{ ...file, blob }]
  })

/** As many of those that wait as may share a transaction, in the order in which they came. */
const taken = (waiting: Array<Waiting>): ReadonlyArray<Waiting> => {
  let [requests, files] = [0, 0]
  for (const { request } of waiting) {
    files += request.files.length
    if (requests > 0 && files > filesMost) break
    requests++
  }
  return waiting.splice(0, requests)
}

type Write = (
  requests: readonly [Joinable, ...ReadonlyArray<Joinable>]
) => Effect.Effect<ReadonlyArray<WrittenFile>, Failure>

/** Ends every request by one transaction; where that fails, each by one of its own. */
const together = (
  write: Write,
  [first, ...others]: readonly [Waiting, ...ReadonlyArray<Waiting>]
): Effect.Effect<unknown> => {
  const some = [first, ...others]
  const alone = ({ done, request }: Waiting) => Deferred.into(write([request]), done)
  if (others.length === 0) return alone(first)
  return Effect.matchEffect(write([first.request, ...others.map(({ request }) => request)]), {
    onSuccess: (written) => {
      let at = 0
      return Effect.forEach(some, ({ done, request }) => {
        at += request.files.length
        return Deferred.succeed(done, written.slice(at - request.files.length, at))
      })
    },
    // Postgres is away for all of them.
    onFailure: (failure) =>
      Predicate.isTagged(failure, "ServiceUnavailable")
        ? Effect.forEach(some, ({ done }) => Deferred.fail(done, failure))
        : Effect.forEach(some, alone)
  }).pipe(Effect.onError((cause) => Effect.forEach(some, ({ done }) => Deferred.failCause(done, cause))))
}

/** The requests that wait, by the places that they are for. */
class Lanes {
  readonly #lanes = new Map<string, { readonly waiting: Array<Waiting>; underWay: number }>()
  readonly #write: Write
  readonly #run: (effect: Effect.Effect<unknown>) => void

  constructor(write: Write, run: (effect: Effect.Effect<unknown>) => void) {
    this.#write = write
    this.#run = run
  }

  add(waiting: Waiting): void {
    const name = laneOf(waiting.request)
    const lane = this.#lanes.get(name) ?? { waiting: [], underWay: 0 }
    this.#lanes.set(name, lane)
    lane.waiting.push(waiting)
    this.#advance(name)
  }

  #advance(name: string): void {
    const lane = this.#lanes.get(name)
    if (lane === undefined || lane.underWay >= atOnce) return
    const [first, ...others] = taken(lane.waiting)
    if (first === undefined) {
      if (lane.underWay === 0) this.#lanes.delete(name)
      return
    }
    lane.underWay++
    const over = Effect.sync(() => {
      lane.underWay--
      this.#advance(name)
    })
    this.#run(Effect.ensuring(together(this.#write, [first, ...others]), over))
  }
}

const make = Effect.gen(function* () {
  const blobs = yield* BlobStore
  const uploaded = yield* UploadedFiles
  const quotas = yield* StorageQuotas
  const run = yield* FiberSet.makeRuntime()

  /** One transaction for requests of one lane. */
  const write: Write = (requests) => {
    const [{ place, source, userId }] = requests
    const incoming = { userId, quotaBytes: quotas.of(userId) }
    const staged = requests.flatMap(({ files }) => files.map((file) => file.staged))
    return blobs.publishRows(incoming, staged, (made) => {
      let at = 0
      const files = requests.flatMap((request) => {
        at += request.files.length
        return filesOf(request, made, at - request.files.length)
      })
      return uploaded.write(userId, source, place, files)
    })
  }
  const lanes = new Lanes(write, run)
  const joined = Effect.fnUntraced(function* (request: Joinable) {
    const done = yield* Deferred.make<ReadonlyArray<WrittenFile>, Failure>()
    lanes.add({ request, done })
    return yield* Deferred.await(done)
  })
  return JoinedUploads.of({
    publish: (arrival, request) =>
      !arrival.isReserved && isJoinable(request)
        ? Effect.andThen(arrival.going, joined(request))
        : arrival.publish(
            request.files.map(({ staged }) => staged),
            (made) => uploaded.write(request.userId, request.source, request.place, filesOf(request, made))
          )
  })
})
