import { Context, Effect, Layer, Predicate } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { PayloadTooLarge, Problem, StorageFull } from "#schemas/core/Problem.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { AppConfig } from "#src/Config.ts"
import type { RawBody } from "#src/front/RawRoute.ts"
import { isMultipart } from "#src/http/MultipartBody.ts"
import type { BlobSource, BlobTooLarge } from "#src/infra/blobs/BlobFiles.ts"
import type { NewBlob, QuotaReached } from "#src/infra/blobs/BlobIndex.ts"
import { BlobStore } from "#src/infra/blobs/BlobStore.ts"
import type { StagedBlob } from "#src/infra/blobs/BlobUploads.ts"
import type { DiskFull } from "#src/infra/blobs/Disk.ts"
import type { Gone } from "./UploadForm.ts"

/** Why the store takes no bytes. */
export type StoreFault = BlobTooLarge | DiskFull | QuotaReached

/** Why a request comes to nothing. */
export type Failure = Problem | Gone | StoreFault

/** A request whose bytes are coming. */
export interface Arrival {
  /** ends as `gone` where the key ends */
  readonly body: RawBody
  /** Takes the bytes of a file. */
  readonly stage: (source: BlobSource<Problem | Gone>) => Effect.Effect<StagedBlob, Failure>
  /** its bytes count for the quota while they come */
  readonly isReserved: boolean
  /** Fails where the key has ended. */
  readonly going: Effect.Effect<void, Problem>
  /** Makes blobs of files, with records that refer to them, in one transaction: once. */
  readonly publish: <A>(
    staged: ReadonlyArray<StagedBlob>,
    commit: (blobs: ReadonlyArray<NewBlob>) => Effect.Effect<A, Problem | SqlError>
  ) => Effect.Effect<A, Failure>
}

/** Bytes of a form around its files at most, so that one whose files fit is not refused for the rest. */
const formBytes = 8 * 1024 * 1024

/** The bytes of files that a request is known to bring. */
const expectedIn = ({ body, request }: KeyedExchange): number => {
  const aroundBytes = isMultipart(request.header("content-type")) ? formBytes : 0
  return Math.max((body.declaredBytes ?? 0) - aroundBytes, 0)
}

/** Takes the bytes of requests, of any number of files, into the store: all of them, or none. */
export class Receiving extends Context.Service<
  Receiving,
  {
    /** the longest file */
    readonly maxBytes: number
    /**
     * Hands a request's bytes to `use`, which stages and publishes them. They end with the key; faults of the store become
     * answers, and `gone` none.
     *
     * @param field the one that is at fault where a file is too long
     */
    readonly receive: (
      exchange: KeyedExchange,
      key: Principal,
      field: string,
      use: (arrival: Arrival) => Effect.Effect<void, Failure>
    ) => Effect.Effect<void, Problem>
  }
>()("signalbox/files/Receiving") {
  static readonly layer = Layer.effect(
    Receiving,
    Effect.gen(function* () {
      const blobs = yield* BlobStore
      const quotas = yield* StorageQuotas
      const { limits } = yield* AppConfig
      const maxBytes = limits.sharedFileBytes
      return Receiving.of({
        maxBytes,
        receive: (exchange, key, field, use) => {
          let isOver = false
          const body = endingBody(exchange.body, () => isOver)
          const { declaredBytes } = body
          const incoming = {
            userId: key.ownerId,
            maxBytes: declaredBytes ?? Number.MAX_SAFE_INTEGER,
            expectedBytes: expectedIn(exchange),
            quotaBytes: quotas.of(key.ownerId),
            inRows: true
          }
          const unwatch = exchange.watch(() => (isOver = true))
          const arriving = Effect.map(blobs.staging(incoming), ({ isReserved, publish, stage }): Arrival => ({
            body,
            isReserved,
            stage: (source) => stage(source, maxBytes),
            going: Effect.suspend(() => (isOver ? Effect.fail(invalidKey()) : Effect.void)),
            publish: (staged, commit) => (isOver ? Effect.fail(invalidKey()) : publish(staged, commit))
          }))
          return Effect.flatMap(arriving, use).pipe(
            Effect.scoped,
            Effect.ensuring(Effect.sync(unwatch)),
            Effect.catch((fault) => {
              const problem = isOver ? invalidKey() : problemOf(fault, field, maxBytes)
              return problem === undefined ? Effect.void : Effect.fail(problem)
            })
          )
        }
      })
    })
  )
}

const endingBody = (body: RawBody, isOver: () => boolean): RawBody => ({
  declaredBytes: body.declaredBytes,
  pull: async () => {
    const piece = await body.pull()
    return isOver() ? "gone" : piece
  }
})

/** undefined: there is no one left to answer */
const problemOf = (fault: Failure, field: string, maxBytes: number): Problem | undefined => {
  if (Predicate.isString(fault)) return undefined
  if (fault instanceof Problem) return fault
  switch (fault._tag) {
    case "BlobTooLarge":
      return PayloadTooLarge.of(`${field}: at most ${maxBytes} bytes`)
    case "DiskFull":
      return StorageFull.of("The disk is full; nothing was stored")
    case "QuotaReached":
      return StorageFull.of(`Quota of ${fault.quotaBytes} bytes reached`)
  }
}
