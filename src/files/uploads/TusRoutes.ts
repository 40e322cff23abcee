import { Effect, Predicate, Result } from "effect"
import { NotFound, PreconditionFailed, type Problem, UnsupportedMediaType } from "#schemas/core/Problem.ts"
import type { Upload } from "#schemas/files/Upload.ts"
import { UploadsApi } from "#schemas/files/UploadsApi.ts"
import { checksumAlgorithms, readChecksum } from "#streams/files/uploads/UploadChecksum.ts"
import {
  methodOf,
  offsetStream,
  readBytes,
  readKind,
  readLength,
  tusVersion
} from "#streams/files/uploads/UploadHeaders.ts"
import { accessOf } from "#src/accounts/Admission.ts"
import { type KeyedExchange, type KeyedRoute, keyedServing, openServing } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import type { RawRoute } from "#src/front/RawRoute.ts"
import { RawServerUrl } from "#src/ServerUrl.ts"
import { makeHandleFromDevice } from "../devices/FromDevice.ts"
import type { Received } from "./ReceivedUploads.ts"
import { orInvalid } from "./UploadTargets.ts"
import { makeUploadResource, type UploadResource, type UploadState } from "./UploadResource.ts"
import { type UploadRow, uploadNotFound } from "./Uploads.ts"

type Headers = ReadonlyArray<readonly [string, string]>
type Handle = KeyedRoute["handle"]

/** The path of uploads; an upload's has its id behind it. */
const uploadsPath = "/api/uploads/"

const extensions =
  "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination,concatenation"

/** tus 1.0.0 has this status of its own. */
const checksumMismatch = 460

const askedMethods = "POST, GET, HEAD, PATCH, DELETE, OPTIONS"
const askedHeaders =
  "Authorization, Content-Type, Tus-Resumable, Upload-Length, Upload-Defer-Length, Upload-Offset, Upload-Metadata, " +
  "Upload-Checksum, Upload-Concat, X-HTTP-Method-Override, X-Requested-With, X-Request-Id"

/** Headers that scripts of other origins may read beside those of every answer. */
const toldHeaders =
  "Location, Upload-Offset, Upload-Length, Upload-Defer-Length, Upload-Expires, Upload-Metadata, Upload-Concat, " +
  "Upload-File-Id, Upload-Direct-Url, Tus-Resumable, Tus-Version"

const dated = (date: Date): string => date.toUTCString()

/**
 * Browsers send a request once more by themselves, from its old offset, where its connection had been used before and was cut.
 * One that is new they leave to their page, which asks for the offset.
 */
const isOfBrowser = ({ request }: KeyedExchange): boolean =>
  request.header("user-agent").startsWith("Mozilla/")

/** Of every answer but those of GET. Clients of another version are told which one is spoken. */
const versioned =
  (handle: Handle): Handle =>
  (exchange, key) => {
    if (isOfBrowser(exchange)) exchange.lastOfConnection()
    exchange.setHeader("Tus-Resumable", tusVersion)
    exchange.setHeader("Access-Control-Expose-Headers", toldHeaders)
    if (exchange.request.header("tus-resumable") === tusVersion) return handle(exchange, key)
    exchange.setHeader("Tus-Version", tusVersion)
    return Effect.fail(PreconditionFailed.of(`Tus-Resumable: expected ${tusVersion}`))
  }

const idOf = ({ request }: KeyedExchange): Effect.Effect<string, Problem> => {
  const id = request.params["id"] ?? ""
  return /^upl_[0-9A-Za-z]{22}$/.test(id) ? Effect.succeed(id) : Effect.fail(uploadNotFound)
}

/** Fails where bytes come that are not declared as such. */
const checkType = ({ body, request }: KeyedExchange): Effect.Effect<boolean, Problem> => {
  const type = request.header("content-type").split(";", 1)[0]?.trim().toLowerCase()
  if (type === offsetStream) return Effect.succeed(true)
  return body.declaredBytes === 0
    ? Effect.succeed(false)
    : Effect.fail(UnsupportedMediaType.of(`Content-Type: expected ${offsetStream}`))
}

/** Headers of an upload that tell how far it is. */
const stateHeaders = ({ expiresAt, file, kind, length, metadata, offset, parts }: UploadState): Headers => [
  ["Upload-Offset", String(offset)],
  length === null ? ["Upload-Defer-Length", "1"] : ["Upload-Length", String(length)],
  ["Upload-Expires", dated(expiresAt)],
  ...(metadata === "" ? [] : [["Upload-Metadata", metadata] as const]),
  ...(kind === "part" ? [["Upload-Concat", "partial"] as const] : []),
  ...(kind === "joined"
    ? [["Upload-Concat", `final;${(parts ?? []).map((part) => uploadsPath + part).join(" ")}`] as const]
    : []),
  ...fileHeaders(file)
]

const fileHeaders = (file: UploadState["file"]): Headers =>
  file === undefined
    ? []
    : [
        ["Upload-File-Id", file.fileId],
        ...(file.directUrl === null ? [] : [["Upload-Direct-Url", file.directUrl] as const])
      ]

const shown = ({ createdAt, expiresAt, fields, file, id, kind, length, offset }: UploadRow): Upload => ({
  id,
  url: uploadsPath + id,
  filename: fields?.filename ?? null,
  path: fields?.path ?? null,
  dir: fields?.dir ?? null,
  directoryId: fields?.directoryId ?? null,
  partial: kind === "part",
  size: length,
  offset,
  modifiedAt: fields?.modifiedAt ?? null,
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
  file
})

/** The answer to a request that brought bytes. */
const tell = (exchange: KeyedExchange, status: number, received: Received, headers: Headers): void => {
  if (received === "gone") return
  if (received === "mismatch")
    return exchange.sendJson(checksumMismatch, {
      error: "Upload-Checksum: the bytes have another checksum; none of them is kept"
    })
  exchange.send(status, [
    ...headers,
    ["Upload-Offset", String(received.offset)],
    ...fileHeaders(received.file)
  ])
}

const sentOf = Effect.fnUntraced(function* ({ request }: KeyedExchange) {
  const headerOf = (name: string): string => request.header(name)
  const offset = yield* orInvalid(readBytes(headerOf, "Upload-Offset"))
  const length = yield* orInvalid(readBytes(headerOf, "Upload-Length"))
  const checksum = yield* orInvalid(readChecksum(request.header("upload-checksum")))
  return { offset, length, checksum }
})

/** The common part of handlers. */
interface Serving {
  readonly resource: UploadResource
  readonly partsMax: number
  readonly expiresOf: () => Date
  /** A file's link is an address, not a path. */
  readonly addressed: (
    exchange: KeyedExchange,
    file: UploadState["file"]
  ) => Effect.Effect<UploadState["file"]>
}

const creating = ({ addressed, expiresOf, partsMax, resource }: Serving): Handle =>
  Effect.fnUntraced(function* (exchange, key) {
    const { request } = exchange
    const headerOf = (name: string): string => request.header(name)
    const kind = yield* orInvalid(readKind(request.header("upload-concat"), uploadsPath, partsMax))
    const length = kind._tag === "Joined" ? null : yield* orInvalid(readLength(headerOf))
    const sent = yield* sentOf(exchange)
    const hasBytes = yield* checkType(exchange)
    const id = yield* resource.create(key, { kind, length, metadata: request.header("upload-metadata") })
    const headers: Headers = [
      ["Location", uploadsPath + id],
      ["Upload-Expires", dated(expiresOf())]
    ]
    const begun = Effect.gen(function* () {
      const turn = yield* resource.take(key, id)
      if (hasBytes) {
        const received = yield* resource.receive(exchange, turn, { ...sent, length: undefined, offset: 0 })
        if (Predicate.isString(received)) return received
        return { ...received, file: yield* addressed(exchange, received.file) }
      }
      const state = yield* resource.state(turn)
      return { ...state, file: yield* addressed(exchange, state.file) }
    }).pipe(Effect.scoped)
    // Without this answer nobody knows its address.
    const ended = Effect.catch(
      Effect.scoped(Effect.flatMap(resource.take(key, id), resource.end)),
      (problem) => Effect.logDebug(`The upload ${id} ends by itself`, problem)
    )
    const received = yield* Effect.onError(begun, () => ended)
    if (Predicate.isString(received)) yield* ended
    return tell(exchange, 201, received, headers)
  })

const handlersOf = (serving: Serving) => {
  const { addressed, expiresOf, resource } = serving

  const append: Handle = Effect.fnUntraced(function* (exchange, key) {
    const id = yield* idOf(exchange)
    const { offset, ...sent } = yield* sentOf(exchange)
    if (offset === undefined) yield* orInvalid(Result.fail({ field: "Upload-Offset", text: "is required" }))
    if (!(yield* checkType(exchange)))
      yield* UnsupportedMediaType.of(`Content-Type: expected ${offsetStream}`)
    const turn = yield* resource.take(key, id)
    const received = yield* resource.receive(exchange, turn, { ...sent, offset: offset ?? 0 })
    const file = Predicate.isString(received) ? undefined : yield* addressed(exchange, received.file)
    const told = Predicate.isString(received) ? received : { ...received, file }
    return tell(exchange, 204, told, [["Upload-Expires", dated(expiresOf())]])
  }, Effect.scoped)

  const head: Handle = Effect.fnUntraced(function* (exchange, key) {
    const turn = yield* resource.take(key, yield* idOf(exchange))
    const state = yield* resource.state(turn)
    const file = yield* addressed(exchange, state.file)
    exchange.setHeader("Cache-Control", "no-store")
    return exchange.send(200, stateHeaders({ ...state, file }))
  }, Effect.scoped)

  const end: Handle = Effect.fnUntraced(function* (exchange, key) {
    yield* resource.end(yield* resource.take(key, yield* idOf(exchange)))
    return exchange.send(204, [])
  }, Effect.scoped)

  const read: Handle = Effect.fnUntraced(function* (exchange, key) {
    return exchange.sendJson(200, shown(yield* resource.find(key, yield* idOf(exchange))))
  })

  const list: Handle = Effect.fnUntraced(function* (exchange, key) {
    return exchange.sendJson(200, { uploads: (yield* resource.open(key)).map(shown) })
  })

  return { create: creating(serving), append, head, end, read, list }
}

/** The protocol as it is spoken here, for clients that ask, and for browsers of other origins before their requests. */
const options =
  (maxBytes: number, allow: string) =>
  (exchange: KeyedExchange): Effect.Effect<void> =>
    Effect.sync(() =>
      exchange.send(204, [
        ["Tus-Resumable", tusVersion],
        ["Tus-Version", tusVersion],
        ["Tus-Extension", extensions],
        ["Tus-Max-Size", String(maxBytes)],
        ["Tus-Checksum-Algorithm", checksumAlgorithms.join(",")],
        ["Allow", allow],
        ["Access-Control-Allow-Methods", askedMethods],
        ["Access-Control-Allow-Headers", askedHeaders],
        ["Access-Control-Max-Age", "86400"]
      ])
    )

const ofAll = "GET, POST, HEAD, OPTIONS"
const ofOne = "GET, HEAD, PATCH, POST, DELETE, OPTIONS"

/** Resumable uploads by tus 1.0.0, served beside the Effect pipeline. Source: contract/files#resumable-uploads. */
export const tusRoutes = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const { urlFor } = yield* RawServerUrl
  const resource = yield* makeUploadResource
  const serve = yield* keyedServing
  const open = yield* openServing
  const fromDevice = yield* makeHandleFromDevice
  const handlers = handlersOf({
    resource,
    partsMax: limits.uploadParts,
    expiresOf: () => new Date(Date.now() + limits.uploadKeptMillis),
    addressed: ({ request }, file) =>
      file === undefined || file.directUrl === null
        ? Effect.succeed(file)
        : Effect.map(urlFor(request), (url) => ({ ...file, directUrl: url + file.directUrl }))
  })
  const { endpoints } = UploadsApi
  const served = (endpoint: (typeof endpoints)[keyof typeof endpoints], handle: Handle): RawRoute["handle"] =>
    serve(accessOf(endpoint, UploadsApi), endpoint.path, fromDevice(handle))

  const { appendToUpload, createUpload, endUpload, listUploads, readUpload } = endpoints
  const create = served(createUpload, versioned(handlers.create))
  const byMethod: Readonly<Record<string, RawRoute["handle"]>> = {
    PATCH: served(appendToUpload, versioned(handlers.append)),
    HEAD: served(appendToUpload, versioned(handlers.head)),
    DELETE: served(endUpload, versioned(handlers.end)),
    GET: served(readUpload, handlers.read)
  }
  const unknown = open(readUpload.path, () =>
    Effect.fail(NotFound.of("X-HTTP-Method-Override: no such method here"))
  )
  const route = (path: string, method: string, allow: string, handle: RawRoute["handle"]): RawRoute => ({
    methods: [method],
    path,
    allow,
    cors: "configured",
    // The handler knows what an upload may have.
    maxBodyBytes: Number.MAX_SAFE_INTEGER,
    handle
  })
  const all = createUpload.path
  const one = readUpload.path
  return [
    route(all, "POST", ofAll, create),
    route(all, "GET", ofAll, served(listUploads, handlers.list)),
    route(all, "OPTIONS", ofAll, open(all, options(limits.sharedFileBytes, ofAll))),
    ...Object.entries(byMethod).map(([method, handle]) => route(one, method, ofOne, handle)),
    route(one, "POST", ofOne, (request, body, reply) => {
      const meant = methodOf(request.method, request.header("x-http-method-override"))
      return (byMethod[meant] ?? unknown)(request, body, reply)
    }),
    route(one, "OPTIONS", ofOne, open(one, options(limits.sharedFileBytes, ofOne)))
  ]
})
