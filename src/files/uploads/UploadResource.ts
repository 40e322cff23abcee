import { Effect, Predicate, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Principal } from "#schemas/core/Authorization.ts"
import { invalidField, PayloadTooLarge, type Problem } from "#schemas/core/Problem.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import type { UploadKind } from "#streams/files/uploads/UploadHeaders.ts"
import { readMetadata } from "#streams/files/uploads/UploadMetadata.ts"
import { isComplete } from "#streams/files/uploads/UploadProgress.ts"
import { StorageQuotas } from "#src/accounts/StorageQuotas.ts"
import { AppConfig } from "#src/Config.ts"
import { storeAway, storeAwayUntimed } from "#src/http/StoreAway.ts"
import { reachOf } from "../access/Reach.ts"
import { fullDisk, makeFinishing, quotaReached } from "./FinishedUploads.ts"
import { makeReceiving } from "./ReceivedUploads.ts"
import { makeTargets, orInvalid } from "./UploadTargets.ts"
import { makeTurns, type UploadTurn } from "./UploadTurns.ts"
import { type NewUpload, Uploads, type UploadRow } from "./Uploads.ts"

/** An upload that a client asks for, in whatever dialect. */
export interface WantedUpload {
  readonly kind: UploadKind
  /** null: told later */
  readonly length: number | null
  /** `key base64,key base64` */
  readonly metadata: string
}

/** How far an upload is, with the file that it has become. */
export interface UploadState extends Pick<
  UploadRow,
  "id" | "kind" | "length" | "offset" | "metadata" | "parts" | "expiresAt"
> {
  readonly file: UploadedFile | undefined
}

const described = { Whole: "whole", Part: "part", Joined: "joined" } as const

/** Makes a row of an upload that is asked for, where it may be. */
const makePlans = Effect.gen(function* () {
  const uploads = yield* Uploads
  const targetOf = yield* makeTargets
  const { limits } = yield* AppConfig
  const quotas = yield* StorageQuotas
  const maxBytes = limits.sharedFileBytes

  /** The length of an upload that is made of others, which have to be complete. */
  const lengthOfParts = Effect.fnUntraced(function* (userId: string, ids: ReadonlyArray<string>) {
    const parts = yield* uploads.parts(userId, ids)
    for (const [index, id] of ids.entries()) {
      const part = parts.find((one) => one.id === id)
      if (part === undefined || part.kind !== "part")
        return yield* invalidField("Upload-Concat", `there is no partial upload ${id}`)
      if (!isComplete(part))
        return yield* invalidField("Upload-Concat", `the partial upload ${index + 1} is not complete`)
    }
    return parts.reduce((sum, { offset }) => sum + offset, 0)
  })

  return Effect.fnUntraced(function* (
    key: Principal,
    { kind, length, metadata }: WantedUpload
  ): Effect.fn.Return<NewUpload, Problem | SqlError> {
    const userId = key.ownerId
    const values = yield* orInvalid(readMetadata(metadata, limits.uploadMetadataBytes))
    const target =
      kind._tag === "Part" ? { fields: null, bucket: null } : yield* targetOf(userId, reachOf(key), values)
    const ids = kind._tag === "Joined" ? kind.parts : null
    const bytes = ids === null ? length : yield* lengthOfParts(userId, ids)
    if (bytes !== null && bytes > maxBytes)
      return yield* PayloadTooLarge.of(`Upload-Length: at most ${maxBytes} bytes`)
    return {
      ...target,
      userId,
      kind: described[kind._tag],
      length: bytes,
      metadata,
      parts: ids,
      quotaBytes: quotas.of(userId)
    }
  })
})

/** Uploads that come in several requests, without the headers of a dialect. Source: contract/files#resumable-uploads. */
export const makeUploadResource = Effect.gen(function* () {
  const uploads = yield* Uploads
  const planned = yield* makePlans
  const takeTurn = yield* makeTurns
  const finishing = yield* makeFinishing
  const receive = (yield* makeReceiving)(finishing)
  const create = (key: Principal, wanted: WantedUpload): Effect.Effect<string, Problem> =>
    Effect.flatMap(planned(key, wanted), (upload) =>
      Effect.catch(uploads.create(upload), (error): Effect.Effect<never, Problem | SqlError> => {
        if (Predicate.isTagged(error, "DiskFull")) return Effect.fail(fullDisk)
        if (Predicate.isTagged(error, "QuotaReached")) return Effect.fail(quotaReached(error))
        return Effect.fail(error)
      })
    ).pipe(storeAway)

  /** The upload to oneself: an earlier request ends. */
  const take = (key: Principal, id: string): Effect.Effect<UploadTurn, Problem, Scope.Scope> =>
    storeAwayUntimed(takeTurn(key.ownerId, id, uploads.find(key.ownerId, reachOf(key), id)))

  /** How far it is. One whose bytes are all there becomes a file first, where a request was cut off before that. */
  const state = ({ upload }: UploadTurn): Effect.Effect<UploadState, Problem> =>
    Effect.map(storeAwayUntimed(finishing.finished(upload)), (file) => ({
      ...upload,
      offset: file?.size ?? upload.offset,
      file
    }))

  const end = ({ upload }: UploadTurn): Effect.Effect<void, Problem> =>
    storeAwayUntimed(
      Effect.andThen(upload.isDone ? Effect.void : finishing.end(upload.id), uploads.forget([upload.id]))
    )

  return {
    create,
    take,
    state,
    end,
    receive: (...request: Parameters<typeof receive>) => storeAwayUntimed(receive(...request)),
    find: (key: Principal, id: string) => storeAway(uploads.find(key.ownerId, reachOf(key), id)),
    open: (key: Principal) => storeAway(uploads.open(key.ownerId, reachOf(key)))
  }
})

export type UploadResource = Effect.Success<typeof makeUploadResource>
