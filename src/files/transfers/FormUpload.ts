import { Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { invalidField, type Problem, UnprocessableContent } from "#schemas/core/Problem.ts"
import { bucketName, namesOfPath } from "#schemas/files/Names.ts"
import type { KeyedExchange } from "#src/accounts/KeyedRoute.ts"
import { reachOf, writesFound, writesNamed } from "#src/files/access/Reach.ts"
import { directoryNotFound, type Directory, isDirectoryId, Tree } from "#src/files/tree/Tree.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { isMultipart } from "#src/http/MultipartBody.ts"
import { AppConfig } from "#src/Config.ts"
import { RawServerUrl } from "#src/ServerUrl.ts"
import { readUploadFields } from "#streams/files/UploadFields.ts"
import { type Arrival, Receiving } from "./Receiving.ts"
import { JoinedUploads, type ReceivedFile } from "./JoinedUploads.ts"
import { uploadedItem } from "./UploadedFiles.ts"
import { readUploadForm, type UploadForm } from "./UploadForm.ts"

const defaultBucket = "uploads"

/** The directory that a form names, or the name of its bucket. Source: contract/files#uploads. */
const placeOf = Effect.fnUntraced(function* (tree: Tree["Service"], form: UploadForm, key: Principal) {
  const reach = reachOf(key)
  const id = form.ofForm("directoryId") ?? ""
  const dir = form.ofForm("dir") ?? ""
  if (id === "") {
    const name = yield* bucketName("dir", dir === "" ? defaultBucket : dir)
    yield* writesNamed(reach, name)
    return name
  }
  if (dir !== "") return yield* invalidField("directoryId", "expected this or dir, not both")
  if (!isDirectoryId(id)) return yield* directoryNotFound
  const directory = yield* storeAway(tree.directory(key.ownerId, id))
  return yield* writesFound(reach, directory, directoryNotFound.message)
})

/** The files of a form with their fields; their hashes are those that were announced. */
const arrivedIn = Effect.fnUntraced(function* (form: UploadForm, hasLinks: boolean) {
  if (form.files.length === 0) return yield* invalidField("files", "expected at least one file")
  const { overfull } = form
  if (overfull !== undefined) return yield* invalidField(overfull, "given more often than there are files")
  return yield* Effect.forEach(form.files, ({ contentType, filename, staged }, index) =>
    Effect.gen(function* () {
      const fields = yield* Effect.mapError(
        Effect.fromResult(readUploadFields((name) => form.textOf(name, index))),
        ({ field, text }) => invalidField(form.fieldOf(field, index), text)
      )
      const path = form.textOf("path", index)
      const names = yield* path === ""
        ? namesOfPath("files", filename)
        : namesOfPath(form.fieldOf("path", index), path)
      const { blob } = staged
      if (fields.sha256 !== null && fields.sha256 !== blob.sha256)
        return yield* UnprocessableContent.of(
          `${form.fieldOf("sha256", index)}: the bytes that came have the SHA-256 ${blob.sha256}`
        )
      return { names, sentType: contentType, fields: { ...fields, link: hasLinks || fields.link } }
    })
  )
})

/** The answer to uploads by forms. Source: contract/files#uploads. */
export const makeFormUpload = Effect.gen(function* () {
  const tree = yield* Tree
  const receiving = yield* Receiving
  const joined = yield* JoinedUploads
  const { urlFor } = yield* RawServerUrl
  const { limits } = yield* AppConfig

  const store = Effect.fnUntraced(function* (
    arrival: Arrival,
    form: UploadForm,
    key: Principal,
    hasLinks: boolean
  ) {
    const said = yield* arrivedIn(form, hasLinks)
    const place: Directory | string = yield* placeOf(tree, form, key)
    const files = said.flatMap((file, index): ReadonlyArray<ReceivedFile> => {
      const staged = form.files[index]?.staged
      return staged === undefined ? [] : [{ ...file, staged }]
    })
    return yield* joined.publish(arrival, { userId: key.ownerId, source: "upload", place, files })
  })

  return (hasLinks: boolean) =>
    Effect.fnUntraced(function* (exchange: KeyedExchange, key: Principal): Effect.fn.Return<void, Problem> {
      const { request } = exchange
      const contentType = request.header("content-type")
      if (!isMultipart(contentType)) return yield* invalidField("body", "expected multipart/form-data")
      yield* receiving.receive(exchange, key, "files", (arrival) =>
        Effect.gen(function* () {
          const form = yield* readUploadForm(arrival.body, contentType, limits, arrival.stage)
          const written = yield* store(arrival, form, key, hasLinks)
          const url = yield* urlFor(request)
          exchange.sendJson(200, { files: written.map((file) => uploadedItem(file, url)) })
        })
      )
    })
})
