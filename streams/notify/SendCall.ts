import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { jsonFaultOf } from "#schemas/core/JsonFitness.ts"
import { isJsonRecord, type JsonRecord } from "#schemas/core/JsonRecord.ts"
import { attachmentsMax, fileBytesMax } from "#schemas/notify/SendTerms.ts"
import { readSend, type SendFields } from "./SendFields.ts"

/** A file in a call of a tool. */
interface CallFile {
  readonly filename: string
  readonly contentType: string | undefined
  readonly bytes: Uint8Array
}

/** The message and files of a call, or of a plain body; or its first fault. */
export type ReadSend =
  | { readonly fields: SendFields; readonly files: ReadonlyArray<CallFile> }
  | { readonly fault: FieldFault }

/** A body without an envelope: the fields of a send, as in REST. */
export const readPlainSend = (json: JsonRecord): ReadSend =>
  Result.match(readSend(json), {
    onSuccess: (fields): ReadSend => ({ fields, files: [] }),
    onFailure: (fault): ReadSend => ({ fault })
  })

/**
 * The arguments of `send_notification`: the fields of a send, but that `attachments` are files, and `attachment_ids` what
 * REST calls so. Files become bytes here: a large call is read in a thread.
 */
export const readSendCall = (args: JsonRecord): ReadSend => {
  const given = (name: string): unknown => (Object.hasOwn(args, name) ? (args[name] ?? undefined) : undefined)
  const read = readSend({
    app: given("app"),
    message: given("message"),
    title: given("title"),
    url: given("url"),
    project: given("project"),
    body: given("body"),
    priority: given("priority"),
    attachments: given("attachment_ids")
  })
  if (Result.isFailure(read)) return { fault: idsNamed(read.failure) }
  const fields = read.success
  const files = filesOf(given("attachments"), fields.attachments.length)
  return Result.isFailure(files) ? { fault: files.failure } : { fields, files: files.success }
}

/** A fault of REST's `attachments` by the name that a call has for them. */
const idsNamed = ({ field, text }: FieldFault): FieldFault => ({
  field: field.replace(/^attachments\b/, "attachment_ids"),
  text
})

type Read<A> = Result.Result<A, FieldFault>

const fail = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

const filesOf = (value: unknown, ids: number): Read<ReadonlyArray<CallFile>> => {
  if (value === undefined) return Result.succeed([])
  if (!Array.isArray(value)) return fail("attachments", "expected a list of files")
  if (value.length + ids > attachmentsMax) return fail("attachments", `at most ${attachmentsMax}`)
  const files: Array<CallFile> = []
  for (const [index, file] of value.entries()) {
    const read = fileOf(`attachments[${index}]`, file)
    if (Result.isFailure(read)) return Result.fail(read.failure)
    files.push(read.success)
  }
  return Result.succeed(files)
}

const fileOf = (field: string, file: unknown): Read<CallFile> => {
  if (!isJsonRecord(file)) return fail(field, "expected an object")
  const given = (name: string): unknown => (Object.hasOwn(file, name) ? (file[name] ?? undefined) : undefined)
  const filename = given("filename")
  if (filename === undefined) return fail(`${field}.filename`, "is required")
  if (!isText(filename, 255)) return fail(`${field}.filename`, "expected text of 1 to 255 characters")
  const contentType = given("content_type")
  if (contentType !== undefined && !isText(contentType, 255))
    return fail(`${field}.content_type`, "expected text of 1 to 255 characters")
  const bytes = contentOf(field, given("text"), given("content_base64"))
  if (Result.isFailure(bytes)) return Result.fail(bytes.failure)
  if (bytes.success.length > fileBytesMax) return fail(field, `at most ${fileBytesMax} bytes`)
  return Result.succeed({ filename, contentType, bytes: bytes.success })
}

const isText = (value: unknown, lengthMax: number): value is string =>
  typeof value === "string" && value.length > 0 && value.length <= lengthMax && value.isWellFormed()

const contentOf = (field: string, text: unknown, base64: unknown): Read<Uint8Array> => {
  if ((text === undefined) === (base64 === undefined))
    return fail(field, "expected either text or content_base64")
  if (base64 !== undefined) {
    const bytes = typeof base64 === "string" ? bytesOfBase64(base64) : undefined
    return bytes === undefined ? fail(`${field}.content_base64`, "expected base64") : Result.succeed(bytes)
  }
  if (typeof text !== "string") return fail(`${field}.text`, "expected text")
  // A file may have a NUL.
  const unfit = jsonFaultOf(text, { isNulRefused: false })
  return unfit === undefined
    ? Result.succeed(new TextEncoder().encode(text))
    : fail(`${field}.text`, unfit.text)
}

/** Undefined where it is none. Line breaks are ignored; padding may be left out. */
const bytesOfBase64 = (base64: string): Uint8Array | undefined => {
  const text = /[\s]/.test(base64) ? base64.replace(/[\t\n\f\r ]+/g, "") : base64
  const end = text.search(/[^A-Za-z0-9+/]/)
  const characters = end < 0 ? text.length : end
  const isWhole = characters % 4 === 0 ? end < 0 : characters % 4 === 1 ? false : isPadding(text, characters)
  if (!isWhole) return undefined
  // Not of the pool that Buffer shares: another thread gets it.
  const bytes = Buffer.allocUnsafeSlow(Math.floor((characters * 3) / 4))
  bytes.write(text, "base64")
  return bytes
}

const isPadding = (text: string, from: number): boolean =>
  from === text.length || text.slice(from) === "=".repeat(4 - (from % 4))
