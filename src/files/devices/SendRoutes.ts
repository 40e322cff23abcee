import { Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import { invalidField, NotFound, type Problem, UnprocessableContent } from "#schemas/core/Problem.ts"
import { namesOfPath } from "#schemas/files/Names.ts"
import { SendFilesApi, SendTarget } from "#schemas/files/SendApi.ts"
import { type KeyedExchange, keyedRoutes } from "#src/accounts/KeyedRoute.ts"
import { AppConfig } from "#src/Config.ts"
import { isMultipart } from "#src/http/MultipartBody.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { readUploadFields } from "#streams/files/UploadFields.ts"
import { reachOf, writesFound, writesNamed } from "../access/Reach.ts"
import { Receiving } from "../transfers/Receiving.ts"
import { UploadedFiles } from "../transfers/UploadedFiles.ts"
import { readUploadForm, type UploadForm } from "../transfers/UploadForm.ts"
import {
  bucketOfDevice,
  type Directory,
  directoryNotFound,
  inboxName,
  isDirectoryId,
  Tree
} from "../tree/Tree.ts"
import { Devices } from "./Devices.ts"
import { makeFromDevice } from "./FromDevice.ts"

/** Where a file is to go: a bucket of a name, a directory, or the machine of a device. */
type Place = string | Directory | { readonly deviceId: string }

const isMachine = (place: Place): place is { readonly deviceId: string } =>
  typeof place !== "string" && "deviceId" in place

const deviceNotFound = NotFound.of("Device not found", { code: "device_not_found", param: "deviceId" })

/** The id that a target needs, and that others do not take. */
const idFor = (form: UploadForm, field: "deviceId" | "directoryId", needed: string) => {
  const [id = "", target] = [form.ofForm(field), form.ofForm("target")]
  if (target === needed && id === "")
    return Effect.fail(invalidField(field, `is required where target is ${needed}`))
  if (target !== needed && id !== "")
    return Effect.fail(invalidField(field, `is for the target ${needed} only`))
  return Effect.succeed(id)
}

const makePlaceOf = Effect.gen(function* () {
  const tree = yield* Tree
  const devices = yield* Devices
  return Effect.fnUntraced(function* (form: UploadForm, key: Principal): Effect.fn.Return<Place, Problem> {
    const target = form.ofForm("target")
    if (target === undefined || !SendTarget.literals.some((known) => known === target))
      return yield* invalidField("target", "expected machine, inbox or directory")
    const deviceId = yield* idFor(form, "deviceId", "machine")
    const directoryId = yield* idFor(form, "directoryId", "directory")
    const reach = reachOf(key)
    if (target === "inbox") return yield* Effect.as(writesNamed(reach, inboxName), inboxName)
    if (target === "directory") {
      if (!isDirectoryId(directoryId)) return yield* directoryNotFound
      const directory = yield* storeAway(tree.directory(key.ownerId, directoryId))
      if (directory.kind === "device") return yield* directoryNotFound
      return yield* writesFound(reach, directory, directoryNotFound.message)
    }
    // A key of some buckets reaches none of the hidden ones.
    yield* writesFound(reach, { bucketName: bucketOfDevice(deviceId) }, deviceNotFound.message)
    yield* storeAway(devices.find(key.ownerId, deviceId))
    return { deviceId }
  })
})

/** The one file of a form, with its fields. */
const sentIn = Effect.fnUntraced(function* (form: UploadForm) {
  const [file, ...others] = form.files
  if (file === undefined || others.length > 0) return yield* invalidField("file", "expected one file")
  const fields = yield* Effect.mapError(
    Effect.fromResult(readUploadFields((name) => form.textOf(name, 0))),
    ({ field, text }) => invalidField(field, text)
  )
  const { sha256 } = file.staged.blob
  if (fields.sha256 !== null && fields.sha256 !== sha256)
    return yield* UnprocessableContent.of(`sha256: the bytes that came have the SHA-256 ${sha256}`)
  const names = yield* namesOfPath("file", file.filename)
  return {
    staged: file.staged,
    names: [names.at(-1) ?? names[0]] as const,
    sentType: file.contentType,
    fields
  }
})

/** On the machine, which may have folders by another separator; all take this one. */
const pathIn = (syncRoot: string, name: string): string => `${syncRoot.replace(/\/+$/, "")}/${name}`

const makeSending = Effect.gen(function* () {
  const receiving = yield* Receiving
  const uploaded = yield* UploadedFiles
  const devices = yield* Devices
  const placeOf = yield* makePlaceOf
  const { limits } = yield* AppConfig

  /** In the transaction of the file: a device that is deleted meanwhile gets none. */
  const settle = Effect.fnUntraced(function* (userId: string, place: Place) {
    if (!isMachine(place)) return { directory: place, syncRoot: undefined }
    const { device, directory } = yield* devices.directoryOf(userId, place.deviceId)
    return { directory, syncRoot: device.syncRoot }
  })

  return Effect.fnUntraced(function* (
    exchange: KeyedExchange,
    key: Principal
  ): Effect.fn.Return<void, Problem> {
    const { request } = exchange
    const contentType = request.header("content-type")
    if (!isMultipart(contentType)) return yield* invalidField("body", "expected multipart/form-data")
    yield* receiving.receive(exchange, key, "file", (arrival) =>
      Effect.gen(function* () {
        const form = yield* readUploadForm(arrival.body, contentType, limits, arrival.stage)
        const place = yield* placeOf(form, key)
        const { staged, ...sent } = yield* sentIn(form)
        const [written, syncRoot] = yield* arrival.publish([staged], ([blob]) =>
          Effect.gen(function* () {
            if (blob === undefined) return yield* Effect.die(new Error("a file without a blob"))
            const { directory, syncRoot: root } = yield* settle(key.ownerId, place)
            const [one] = yield* uploaded.write(key.ownerId, "send", directory, [{ ...sent, blob }])
            return [one, root] as const
          })
        )
        if (written === undefined) return yield* Effect.die(new Error("a file was written without a version"))
        const { groupId, id, name } = written.file
        const clipboardPath = syncRoot === undefined ? null : pathIn(syncRoot, name)
        exchange.sendJson(200, { ok: true, fileId: id, versionGroupId: groupId, clipboardPath })
      })
    )
  })
})

/** Sends files to machines, the Inbox and directories, beside the Effect pipeline. Source: contract/files#sending. */
export const sendRoutes = Effect.gen(function* () {
  const handle = yield* makeSending
  const fromDevice = yield* makeFromDevice
  // The file is measured where it is stored.
  return yield* keyedRoutes(SendFilesApi, {
    sendFile: fromDevice({ maxBodyBytes: Number.MAX_SAFE_INTEGER, handle })
  })
})
