import { Effect, Predicate, Result } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import {
  type BadRequest,
  invalidField,
  PayloadTooLarge,
  PreconditionFailed,
  type Problem,
  RequestTimeout,
  UnprocessableContent
} from "#schemas/core/Problem.ts"
import { bucketName, namesOfPath } from "#schemas/files/Names.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { reachOf, writesNamed } from "#src/files/access/Reach.ts"
import type { RawBody } from "#src/front/RawRoute.ts"
import { isMatch, isNoneMatch } from "#src/http/ByteRanges.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import type { BlobSource } from "#src/infra/blobs/BlobFiles.ts"
import { RawServerUrl } from "#src/ServerUrl.ts"
import { readUploadFields, type UploadFields } from "#streams/files/UploadFields.ts"
import { type Arrival, Receiving } from "./Receiving.ts"
import type { Gone } from "./UploadForm.ts"
import { otherVersion } from "#src/files/tree/Versions.ts"
import { JoinedUploads } from "./JoinedUploads.ts"
import { uploadedItem, UploadedFiles } from "./UploadedFiles.ts"

/** The place of a file, as its address says it. */
interface Place {
  readonly bucket: string
  readonly names: readonly [string, ...Array<string>]
}

/** A segment of the path, decoded; one with an encoded slash is none. */
const decoded = (field: string, segment: string): Effect.Effect<string, BadRequest> => {
  const text = Result.try(() => decodeURIComponent(segment))
  return Result.isFailure(text) || text.success.includes("/")
    ? Effect.fail(invalidField(field, "expected segments of percent-encoded UTF-8 without slashes"))
    : Effect.succeed(text.success)
}

const placeOf = Effect.fnUntraced(function* ({ params }: KeyedExchange["request"], key: Principal) {
  const bucket = yield* bucketName("bucket", yield* decoded("bucket", params["bucket"] ?? ""))
  yield* writesNamed(reachOf(key), bucket)
  const segments = (params["*"] ?? "").split("/")
  const names = yield* namesOfPath(
    "path",
    (yield* Effect.forEach(segments, (segment) => decoded("path", segment))).join("/")
  )
  return { bucket, names }
})

const fieldsOf = (query: string): Effect.Effect<UploadFields, BadRequest> => {
  const sent = new URLSearchParams(query)
  return Effect.mapError(
    Effect.fromResult(readUploadFields((name) => sent.get(name) ?? "")),
    ({ field, text }) => invalidField(field, text)
  )
}

const unmet = PreconditionFailed.of("If-Match, If-None-Match: the file is another one, or not there")

/** The bytes of the body. */
const bytesOf =
  (body: RawBody): BlobSource<Problem | Gone> =>
  async () => {
    const piece = await body.pull()
    if (!Predicate.isString(piece)) return Result.succeed(piece)
    switch (piece) {
      case "complete":
        return Result.succeed(undefined)
      case "slow":
        return Result.fail(RequestTimeout.of("The request body arrives too slowly"))
      case "tooLong":
        return Result.fail(PayloadTooLarge.of("The body is too long"))
      case "gone":
        return Result.fail("gone")
    }
  }

type Files = UploadedFiles["Service"]

/** The version that has to be current when the bytes are there, as the conditions have it now. */
const expectedVersion = Effect.fnUntraced(function* (
  uploaded: Files,
  { request }: KeyedExchange,
  { bucket, names }: Place,
  key: Principal
) {
  const [ifMatch, ifNoneMatch] = [request.header("if-match"), request.header("if-none-match")]
  if (ifMatch === "" && ifNoneMatch === "") return null
  const current = yield* storeAway(uploaded.currentAt(key.ownerId, bucket, names))
  if (current === undefined) return ifMatch === "" ? "none" : yield* unmet
  const etag = `"${current.sha256}"`
  if (ifMatch !== "" && !isMatch(ifMatch, etag)) return yield* unmet
  if (isNoneMatch(ifNoneMatch === "" ? undefined : ifNoneMatch, etag)) return yield* unmet
  return current.id
})

const store = Effect.fnUntraced(function* (
  { joined, uploaded }: { readonly joined: JoinedUploads["Service"]; readonly uploaded: Files },
  exchange: KeyedExchange,
  arrival: Arrival,
  place: Place,
  fields: UploadFields,
  key: Principal
) {
  const condition = yield* expectedVersion(uploaded, exchange, place, key)
  if (condition !== null && fields.ifVersion !== null && fields.ifVersion !== condition)
    return yield* otherVersion(condition === "none" ? null : condition)
  const staged = yield* arrival.stage(bytesOf(arrival.body))
  const { sha256 } = staged.blob
  if (fields.sha256 !== null && fields.sha256 !== sha256)
    return yield* UnprocessableContent.of(`sha256: the bytes that came have the SHA-256 ${sha256}`)
  const said = {
    names: place.names,
    sentType: exchange.request.header("content-type"),
    fields: { ...fields, ifVersion: condition ?? fields.ifVersion }
  }
  const written = joined.publish(arrival, {
    userId: key.ownerId,
    source: "put",
    place: place.bucket,
    files: [{ ...said, staged }]
  })
  if (condition === null) return yield* written
  const isConflict = (fault: unknown): boolean => Predicate.isTagged(fault, "Conflict")
  return yield* Effect.catchIf(written, isConflict, () => Effect.fail(unmet))
})

/** The answer to uploads whose body is the file. Source: contract/files#uploads. */
export const makeRawUpload = Effect.gen(function* () {
  const receiving = yield* Receiving
  const services = { uploaded: yield* UploadedFiles, joined: yield* JoinedUploads }
  const { urlFor } = yield* RawServerUrl

  return Effect.fnUntraced(function* (
    exchange: KeyedExchange,
    key: Principal
  ): Effect.fn.Return<void, Problem> {
    const { request } = exchange
    const place = yield* placeOf(request, key)
    if (request.header("content-range") !== "")
      return yield* invalidField("Content-Range", "the body is the whole file; use /api/uploads for parts")
    const fields = yield* fieldsOf(request.query)
    if ((exchange.body.declaredBytes ?? 0) > receiving.maxBytes)
      return yield* PayloadTooLarge.of(`body: at most ${receiving.maxBytes} bytes`)
    yield* receiving.receive(exchange, key, "body", (arrival) =>
      Effect.gen(function* () {
        const [written] = yield* store(services, exchange, arrival, place, fields, key)
        if (written === undefined) return
        const { file } = written
        const item = JSON.stringify(uploadedItem(written, yield* urlFor(request)))
        exchange.send(
          file.version === 1 ? 201 : 200,
          [
            ["Content-Type", "application/json"],
            ["ETag", `"${file.sha256}"`],
            ["Location", `/api/files/${file.id}`]
          ],
          item
        )
      })
    )
  })
})
