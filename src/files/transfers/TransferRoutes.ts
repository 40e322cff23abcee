import { Effect, Result, Schema } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { PathId } from "#schemas/core/Ids.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import { TransfersApi } from "#schemas/files/TransfersApi.ts"
import { type KeyedExchange, type KeyedRoute, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { reachOf } from "#src/files/access/Reach.ts"
import { fileNotFound, type StoredFile } from "#src/files/tree/Versions.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { makeFromDevice } from "../devices/FromDevice.ts"
import { FileReads } from "./FileReads.ts"
import { makeFormUpload } from "./FormUpload.ts"
import { makeRawUpload } from "./RawUpload.ts"
import { sendBuffer, sendBytes } from "./SendBytes.ts"

const decodeId = Schema.decodeUnknownResult(PathId)

/** The id in the path, where it may be encoded. */
const idOf = ({ request }: KeyedExchange): Effect.Effect<string, Problem> => {
  const sent = request.params["id"] ?? ""
  const id = Result.flatMap(
    Result.try(() => decodeURIComponent(sent)),
    decodeId
  )
  return Result.isSuccess(id) ? Effect.succeed(id.success) : Effect.fail(fileNotFound)
}

/** Another user's file, and one outside the scopes, is not there. */
const mayRead = (file: StoredFile, key: Principal): boolean =>
  file.userId === key.ownerId && reachOf(key).mayRead(file.bucketName)

const optionsOf = ({ request: { query } }: KeyedExchange) =>
  ({
    disposition: query !== "" && new URLSearchParams(query).get("download") === "1" ? "attachment" : "inline"
  }) as const

const reading = (reads: FileReads["Service"]): Pick<KeyedRoute, "atHand" | "handle"> => ({
  atHand: (exchange, key) => {
    const found = reads.atHand(exchange.request.params["id"] ?? "")
    if (found === undefined || !mayRead(found.file, key)) return undefined
    return () => sendBuffer(exchange, found.file, found.bytes, optionsOf(exchange))
  },
  handle: Effect.fnUntraced(function* (exchange, key) {
    const file = yield* storeAway(reads.find(yield* idOf(exchange)))
    if (!mayRead(file, key)) return yield* fileNotFound
    yield* sendBytes(reads, exchange, file, optionsOf(exchange))
  })
})

/** Uploads and downloads of shared files, served beside the Effect pipeline. Source: contract/files. */
export const transferRoutes = Effect.gen(function* () {
  const reads = yield* FileReads
  const upload = yield* makeFormUpload
  const fromDevice = yield* makeFromDevice
  // Each file is measured where it is stored; the handlers know the words for one that is too long.
  const maxBodyBytes = Number.MAX_SAFE_INTEGER
  return yield* keyedRoutes(TransfersApi, {
    cliUpload: fromDevice({ maxBodyBytes, handle: upload(true) }),
    uploadFiles: fromDevice({ maxBodyBytes, handle: upload(false) }),
    uploadRaw: fromDevice({ maxBodyBytes, handle: yield* makeRawUpload }),
    readFile: fromDevice({ maxBodyBytes: 0, isShared: true, ...reading(reads) })
  })
})
