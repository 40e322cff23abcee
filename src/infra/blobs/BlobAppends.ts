import { Effect, Predicate, Result } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { Limits } from "#src/Limits.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { inUserTurn } from "#src/infra/postgres/UserTurns.ts"
import type { BlobFiles, BlobSource, BlobTooLarge } from "./BlobFiles.ts"
import { type BlobIndex, type QuotaReached, UploadGone, type UploadRow } from "./BlobIndex.ts"
import { type Commit, type Incoming, stepBehind, undone } from "./BlobUploads.ts"
import type { DiskFull } from "./Disk.ts"
import { JoinedFiles } from "./JoinedFiles.ts"
import { RunningSums } from "./RunningSums.ts"
import { StoppableSource } from "./StoppableSource.ts"

/** An upload's bytes end at another offset than the request begins with. */
export interface WrongOffset {
  readonly _tag: "WrongOffset"
  readonly written: number
}

export interface AppendOptions {
  /** so much room has to be on the disk; absent: for as much as the upload may still get */
  readonly roomBytes?: number | undefined
  /** nothing of a source that fails is kept, as its bytes cannot be checked */
  readonly isWholeOnly?: boolean
  /** of an upload whose length is not known: its reservation grows with the bytes, and ends with them */
  readonly growth?: Growth | undefined
}

export interface Growth {
  /** all that the upload may have */
  readonly mostBytes: number
  /** all that the user may have; null: no limit */
  readonly quotaBytes: number | null
}

/** Uploads that come in several requests, at any process that shares the directory. */
export interface BlobAppends {
  /** Begins one; answers its id. */
  readonly begin: (incoming: Incoming) => Effect.Effect<string, DiskFull | QuotaReached | SqlError>
  /**
   * Appends to an upload. What came before a failure of the source is kept, and of a process that is killed what came two
   * `uploadSyncMillis` before; answers the bytes that are durable. A request that comes later ends this one.
   */
  readonly append: <E>(
    id: string,
    offset: number,
    source: BlobSource<E>,
    options?: AppendOptions
  ) => Effect.Effect<number | WrongOffset, E | BlobTooLarge | DiskFull | QuotaReached | UploadGone | SqlError>
  /** Changes how many bytes an upload may have: as many as are needed, or as are wanted where the quota has room. */
  readonly resize: (
    id: string,
    bytes: { readonly needed: number; readonly wanted: number },
    quotaBytes: number | null
  ) => Effect.Effect<void, QuotaReached | UploadGone | SqlError>
  /** Makes the bytes of an upload a blob. Where `commit` fails the upload stays as it is, and no longer than without it. */
  readonly finish: <A, E, R>(
    id: string,
    commit: Commit<A, E, R>
  ) => Effect.Effect<A, Exclude<E, SqlError> | DiskFull | UploadGone | ServiceUnavailable, R>
  /** Appends the bytes of other uploads, which stay. Where it was cut off it goes on. `UploadGone` names the one that is gone. */
  readonly join: (
    id: string,
    parts: ReadonlyArray<string>
  ) => Effect.Effect<number, BlobTooLarge | DiskFull | QuotaReached | UploadGone | SqlError>
  /** Whether an upload goes on, in whatever hands. */
  readonly isOpen: (id: string) => Effect.Effect<boolean, SqlError>
  readonly abort: (id: string) => Effect.Effect<void, DiskFull | UploadGone | SqlError>
}

interface Parts {
  readonly files: BlobFiles
  readonly index: BlobIndex
  readonly sql: SqlClient
  readonly limits: Pick<
    Limits,
    "uploadKeptMillis" | "uploadSyncMillis" | "uploadSumsKept" | "uploadRenewMillis"
  >
  readonly minFreeBytes: number
  readonly onPublished: (sha256: string) => void
}

/** The sums of uploads, as the request of an epoch left them, so that bytes that came to this process need not be read anew. */
class KeptSums {
  private readonly byId = new Map<string, { readonly epoch: number; readonly sums: RunningSums }>()
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  /** Where they are of exactly these bytes. */
  keep({ epoch, id }: Held, sums: RunningSums | undefined, bytes: number): void {
    this.byId.delete(id)
    if (sums?.sizeBytes !== bytes) return
    this.byId.set(id, { epoch, sums })
    for (const [oldest] of this.byId) {
      if (this.byId.size <= this.most) break
      this.byId.delete(oldest)
    }
  }

  /** Undefined where another request came between, here or elsewhere. */
  take({ epoch, id }: Held, bytes: number): RunningSums | undefined {
    const kept = this.byId.get(id)
    this.byId.delete(id)
    return kept?.epoch === epoch - 1 && kept.sums.sizeBytes === bytes ? kept.sums : undefined
  }
}

type Held = Pick<UploadRow, "id" | "epoch">

export const makeAppends = (parts: Parts): BlobAppends => {
  const { files, index } = parts
  const { uploadKeptMillis: keptMillis, uploadSumsKept } = parts.limits
  const kept = new KeptSums(uploadSumsKept)
  const { hold, holdLast } = holding(parts)
  const append = appending(parts, kept, hold)
  return {
    begin: Effect.fn("BlobStore.begin")(function* ({ maxBytes: bytes, pool, quotaBytes, userId }: Incoming) {
      const id = newId("upl")
      yield* files.haveRoom(bytes, parts.minFreeBytes)
      yield* index.reserve({ id, userId, pool, bytes, keptMillis }, quotaBytes)
      return id
    }),
    append,
    resize: (id, { needed, wanted }, quotaBytes) => Effect.asVoid(index.grow(id, needed, wanted, quotaBytes)),
    finish: finishing(parts, kept, holdLast),
    join: Effect.fnUntraced(function* (id, partIds) {
      const { written: from } = yield* index.find(id)
      const parts = yield* Effect.forEach(partIds, (part) => index.find(part))
      for (const part of parts) {
        if (!(yield* files.own(part, part, part.written))) return yield* new UploadGone({ id: part.id })
      }
      const paths = parts.map((part) => ({
        id: part.id,
        path: files.temporaryOf(part),
        bytes: part.written
      }))
      const joined = new JoinedFiles(paths, from)
      const close = Effect.promise(() => joined.close())
      const ended = yield* Effect.ensuring(append(id, from, joined.next), close)
      return Predicate.isNumber(ended) ? ended : yield* new UploadGone({ id })
    }),
    isOpen: (id) =>
      Effect.catch(Effect.as(index.find(id), true), (error) =>
        error._tag === "UploadGone" ? Effect.succeed(false) : Effect.fail(error)
      ),
    abort: (id) =>
      Effect.gen(function* () {
        const upload = yield* index.hold(id, (yield* index.find(id)).written, keptMillis)
        if (upload === undefined) return yield* new UploadGone({ id })
        yield* index.end(upload)
        yield* files.discard({ id, file: upload.fileBefore })
      })
  }
}

/** Each request takes hold of its upload. */
const holding = ({ files, index, limits: { uploadKeptMillis: keptMillis, uploadRenewMillis } }: Parts) => {
  /** The row names another file once that is whole and durable: a request that is cut amid the copy loses nothing. */
  const own = Effect.fnUntraced(function* (upload: UploadRow, at: number) {
    const was = { id: upload.id, file: upload.fileBefore }
    const renewed = undone(index.renew(upload.id, keptMillis), upload.id)
    const renewing = Effect.forever(Effect.delay(renewed, uploadRenewMillis))
    const isThere = yield* Effect.scoped(
      Effect.andThen(Effect.forkScoped(renewing), files.own(upload, was, at))
    )
    if (!isThere || upload.file === was.file) return isThere
    yield* Effect.tapError(index.moved(upload), () => files.discard(upload))
    yield* files.discard(was)
    return true
  })
  const hold = Effect.fnUntraced(function* (id: string, offset?: number) {
    const at = offset ?? (yield* index.find(id)).written
    const upload = yield* index.hold(id, at, keptMillis)
    if (upload === undefined)
      return { _tag: "WrongOffset", written: (yield* index.find(id)).written } as const
    if (yield* own(upload, at)) return upload
    // Its bytes were lost.
    yield* index.end(upload)
    return yield* new UploadGone({ id })
  })
  /** The end of an upload, with which another request must not go on meanwhile. */
  const holdLast = (id: string) =>
    Effect.flatMap(hold(id), (upload) =>
      "_tag" in upload ? Effect.fail(new UploadGone({ id })) : Effect.succeed(upload)
    )
  return { hold, holdLast }
}

type Holding = ReturnType<typeof holding>

type GrowthFault = DiskFull | QuotaReached | UploadGone | SqlError

/** A source whose bytes need not fit into what is reserved when they begin to come. */
const growingWith = <E>(
  { files, index, minFreeBytes }: Parts,
  upload: UploadRow,
  { mostBytes, quotaBytes }: Growth,
  source: BlobSource<E>,
  run: <A>(effect: Effect.Effect<A>) => Promise<A>
): BlobSource<E | GrowthFault> => {
  let [reserved, taken] = [upload.reserved, upload.written]
  const grow = Effect.suspend(() => {
    const wanted = Math.max(Math.min(mostBytes, taken + stepBehind(reserved)), taken)
    const room = files.haveRoom(wanted - reserved, minFreeBytes)
    return Effect.andThen(room, index.grow(upload.id, taken, wanted, quotaBytes))
  })
  return async () => {
    const next = await source()
    if (Result.isFailure(next) || next.success === undefined) return next
    taken += next.success.length
    if (taken <= reserved) return next
    const grown = await run(Effect.result(grow))
    if (Result.isFailure(grown)) return Result.fail(grown.failure)
    reserved = grown.success
    return next
  }
}

/** Notes every so often how far a request has come; one that has lost the upload is ended. */
class Noting {
  durable: number
  readonly #parts: Parts
  readonly #upload: UploadRow
  #noted: { readonly bytes: number; readonly at: number }

  constructor(parts: Parts, upload: UploadRow) {
    this.#parts = parts
    this.#upload = upload
    this.durable = upload.written
    this.#noted = { bytes: upload.written, at: Date.now() }
  }

  soon(onLost: (error: UploadGone) => void): Effect.Effect<void> {
    const { index, limits } = this.#parts
    return Effect.suspend(() => {
      const now = { bytes: this.durable, at: Date.now() }
      if (now.bytes === this.#noted.bytes && now.at - this.#noted.at < limits.uploadRenewMillis)
        return Effect.void
      this.#noted = now
      return index.reached(this.#upload, this.durable, limits.uploadKeptMillis)
    }).pipe(
      Effect.catch((error) =>
        error._tag === "UploadGone"
          ? Effect.sync(() => onLost(error))
          : Effect.logDebug(`What has come of the upload ${this.#upload.id} is noted later`, error)
      )
    )
  }
}

const appending = (parts: Parts, kept: KeptSums, hold: Holding["hold"]) => {
  const { files, index, minFreeBytes } = parts
  const { uploadKeptMillis: keptMillis, uploadSyncMillis: everyMillis } = parts.limits
  return <E>(
    id: string,
    offset: number,
    source: BlobSource<E>,
    { growth, isWholeOnly = false, roomBytes = Infinity }: AppendOptions = {}
  ) =>
    Effect.gen(function* () {
      const upload = yield* hold(id, offset)
      if ("_tag" in upload) return upload
      const maxBytes = (growth?.mostBytes ?? upload.reserved) - offset
      const noting = new Noting(parts, upload)
      const sums = kept.take(upload, offset) ?? (offset === 0 ? new RunningSums() : undefined)
      const before = sums?.copy()
      const run = Effect.runPromiseWith(yield* Effect.context<never>())
      const coming = growth === undefined ? source : growingWith(parts, upload, growth, source, run)
      const bytes = new StoppableSource<E | GrowthFault, UploadGone>(coming)
      const appended = Effect.gen(function* () {
        const noteSoon = noting.soon((error) => bytes.stop(error))
        yield* Effect.forkScoped(Effect.forever(Effect.delay(noteSoon, everyMillis)))
        yield* files.haveRoom(Math.min(maxBytes, roomBytes), minFreeBytes)
        const onDurable = (now: number): void => void (noting.durable = now)
        const options = { offset, maxBytes, isWholeOnly, everyMillis, onDurable }
        yield* files.append(upload, bytes.next, { ...options, sums })
      }).pipe(Effect.scoped)
      const letGo = Effect.suspend(() =>
        Effect.andThen(
          index.wrote(upload, noting.durable, keptMillis, growth !== undefined),
          Effect.sync(() =>
            kept.keep(upload, sums?.sizeBytes === noting.durable ? sums : before, noting.durable)
          )
        )
      )
      yield* Effect.onError(appended, () => undone(letGo, id))
      yield* letGo
      return noting.durable
    })
}

const finishing =
  (parts: Parts, kept: KeptSums, holdLast: Holding["holdLast"]): BlobAppends["finish"] =>
  (id, commit) =>
    Effect.gen(function* () {
      const { files, index, onPublished, sql } = parts
      const { uploadKeptMillis: keptMillis, uploadRenewMillis } = parts.limits
      // Its own time: a copy of a long file takes as long as it needs.
      const upload = yield* storeAwayUntimed(holdLast(id))
      const { written } = upload
      const sums = kept.take(upload, written)
      const renewing = Effect.forever(
        Effect.delay(undone(index.renew(id, keptMillis), id), uploadRenewMillis)
      )
      const readied = Effect.gen(function* () {
        const blob = sums?.sums ?? (yield* files.hashOf(upload, written))
        if (blob === undefined) return yield* new UploadGone({ id })
        yield* files.makeFolder(blob)
        const name = yield* files.secondName(upload)
        return name === undefined ? yield* new UploadGone({ id }) : { blob, name }
      })
      const finished = Effect.gen(function* () {
        const { blob, name } = yield* Effect.raceFirst(readied, renewing)
        const published = Effect.gen(function* () {
          yield* index.lock(blob.sha256)
          yield* index.end(upload)
          const made = yield* commit({ ...blob, isNew: true })
          // At the end: what comes before may fail, and the upload then still has its file.
          yield* files.publishNamed(name, blob)
          return made
        }).pipe(sql.withTransaction, inUserTurn(sql, upload.userId))
        const made = yield* storeAway(published)
        onPublished(blob.sha256)
        return made
      }).pipe(Effect.scoped)
      const letGo = Effect.andThen(
        undone(index.letGo(upload), id),
        Effect.sync(() => kept.keep(upload, sums, written))
      )
      const made = yield* Effect.onError(finished, () => letGo)
      yield* files.discard(upload)
      return made
    })
