import { Effect, Predicate, Result, Schema } from "effect"
import { FilesApi } from "#schemas/accounts/FilesApi.ts"
import { PathId, pathIdExpected } from "#schemas/core/Ids.ts"
import {
  invalidField,
  NotFound,
  PayloadTooLarge,
  type Problem,
  RequestTimeout,
  StorageFull
} from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import { byteAnswer } from "#src/http/ByteAnswer.ts"
import { contentDisposition } from "#src/http/ContentDisposition.ts"
import { type FormFault, MultipartBody } from "#src/http/MultipartBody.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import { type FileRow, Files } from "./Files.ts"
import { type KeyedExchange, type KeyedRoute, keyedRoutes } from "./KeyedRoute.ts"

const expected = "expected multipart/form-data with one field named file that holds a file"

const tooLarge = (maxFileSizeBytes: number): PayloadTooLarge =>
  PayloadTooLarge.of(`file: at most ${maxFileSizeBytes} bytes`)

/** undefined: nobody is left to be answered */
const problemOf = (fault: FormFault, maxFileSizeBytes: number): Problem | undefined => {
  switch (fault) {
    case "gone":
      return undefined
    case "slow":
      return RequestTimeout.of("file: the form comes too slowly")
    case "tooLong":
      return tooLarge(maxFileSizeBytes)
    case "malformed":
      return invalidField("file", "the form is cut off or malformed")
    case "tooManyParts":
      return invalidField("file", "expected one field only")
  }
}

/** The bytes of the part that a form is in. They end with the form: where it is cut off or has more, there is no file. */
const contentOf =
  (form: MultipartBody): BlobSource<FormFault> =>
  async () => {
    const event = await form.next()
    if (event._tag === "Bytes") return Result.succeed(event.bytes)
    const next = event._tag === "PartEnd" ? await form.next() : event
    if (next._tag === "Fault") return Result.fail(next.fault)
    const ended = await form.drain()
    return ended === "complete" ? Result.succeed(undefined) : Result.fail(ended)
  }

/** Stores the one file of a form while it arrives. */
const receive = Effect.fnUntraced(function* (
  files: Files["Service"],
  userId: string,
  form: MultipartBody,
  maxBytes: number
) {
  const first = yield* Effect.promise(() => form.next())
  if (first._tag === "Fault") return yield* Effect.fail(first.fault)
  const part = first._tag === "Part" ? first.part : undefined
  if (part?.name !== "file" || part.filename === undefined) return yield* invalidField("file", expected)
  const { contentType, filename } = part
  const owner = { userId, source: "upload", expiresAt: null }
  return yield* files.put(contentOf(form), { ...owner, filename, contentType, maxBytes })
})

const upload = (files: Files["Service"], maxFileSizeBytes: number, formBytes: number): KeyedRoute["handle"] =>
  Effect.fnUntraced(function* (exchange, { ownerId }) {
    const contentType = exchange.request.header("content-type")
    if (!/^multipart\/form-data\s*;/i.test(contentType)) return yield* invalidField("file", expected)
    const bytes = maxFileSizeBytes + formBytes
    const { declaredBytes } = exchange.body
    if (declaredBytes !== undefined && declaredBytes > bytes) return yield* tooLarge(maxFileSizeBytes)
    const form = new MultipartBody(exchange.body, contentType, { parts: 1, bytes })
    const stored = yield* Effect.result(receive(files, ownerId, form, declaredBytes ?? Infinity))
    if (Result.isSuccess(stored)) {
      const { filename, id } = stored.success
      return exchange.sendJson(200, { id, filename, url: `/api/v1/files/${id}` })
    }
    const { failure } = stored
    if (Predicate.isTagged(failure, "BlobTooLarge")) return yield* tooLarge(maxFileSizeBytes)
    if (Predicate.isTagged(failure, "DiskFull"))
      return yield* StorageFull.of("The disk is full; the file was not stored")
    if (Predicate.isTagged(failure, "QuotaReached"))
      return yield* StorageFull.of(`Quota of ${failure.quotaBytes} bytes reached`)
    const problem = Predicate.isString(failure) ? problemOf(failure, maxFileSizeBytes) : failure
    if (problem !== undefined) return yield* problem
  })

/** Types that a browser would run as a page of this origin. Source: contract/accounts#files. */
const isActive = (contentType: string): boolean => /html|xml|svg/i.test(contentType)

const headersOf = (file: FileRow): Record<string, string> => ({
  "content-disposition": contentDisposition("inline", file.filename),
  "cache-control": "private, no-cache",
  ...(isActive(file.contentType) ? { "content-security-policy": "sandbox; default-src 'none'" } : {})
})

const decodeId = Schema.decodeUnknownResult(PathId)

/** The file's id in the path, where it may be encoded. */
const idOf = (exchange: KeyedExchange): Effect.Effect<string, Problem> => {
  const sent = exchange.request.params["id"] ?? ""
  const text = Result.try(() => decodeURIComponent(sent))
  if (Result.isFailure(text)) return Effect.fail(NotFound.of("Not found"))
  return Effect.mapError(Effect.fromResult(decodeId(text.success)), () =>
    invalidField("id", `expected ${pathIdExpected}`)
  )
}

const answerOf = ({ request }: KeyedExchange, file: FileRow) =>
  byteAnswer(
    { method: request.method, header: (name) => request.header(name) },
    {
      sizeBytes: file.size,
      contentType: file.contentType,
      etag: `"${file.sha256}"`,
      headers: headersOf(file)
    }
  )

const sendBytes = (exchange: KeyedExchange, file: FileRow, bytes: Buffer): void => {
  const { headers, range, status, text } = answerOf(exchange, file)
  exchange.send(
    status,
    Object.entries(headers),
    range === undefined ? text : bytes.subarray(range.from, range.to)
  )
}

const download = (files: Files["Service"]): Pick<KeyedRoute, "atHand" | "handle"> => ({
  atHand: (exchange) => {
    const found = files.atHand(exchange.request.params["id"] ?? "")
    return found && (() => sendBytes(exchange, found.file, found.bytes))
  },
  handle: Effect.fnUntraced(function* (exchange) {
    const id = yield* idOf(exchange)
    const file = yield* storeAway(files.find(id))
    const { headers, range, status, text } = answerOf(exchange, file)
    if (range === undefined) return exchange.send(status, Object.entries(headers), text)
    const content = yield* files.open(file)
    if (!Predicate.isNumber(content)) sendBytes(exchange, file, content)
    else exchange.sendFile(status, Object.entries(headers), { fd: content, ...range })
  })
})

const remove = (files: Files["Service"]): KeyedRoute["handle"] =>
  Effect.fnUntraced(function* (exchange, { ownerId }) {
    const id = yield* idOf(exchange)
    const removed = yield* Effect.result(storeAway(files.remove(id, ownerId)))
    if (Result.isSuccess(removed)) return exchange.sendJson(200, { deleted: true })
    const { failure } = removed
    if (failure._tag !== "NotFound") return yield* failure
    return exchange.sendJson(failure.status, { deleted: false })
  })

/** Account files, served beside the Effect pipeline. Source: contract/accounts#files. */
export const fileRoutes = Effect.gen(function* () {
  const files = yield* Files
  const { limits, maxFileSizeBytes } = yield* AppConfig
  return yield* keyedRoutes(FilesApi, {
    // The handler knows what to say of a form that is too long.
    upload: {
      maxBodyBytes: Number.MAX_SAFE_INTEGER,
      handle: upload(files, maxFileSizeBytes, limits.fileFormBytes)
    },
    download: { maxBodyBytes: 0, ...download(files) },
    delete: { maxBodyBytes: 0, handle: remove(files) }
  })
})
