import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"

/** The one version of tus that is spoken. Source: tus.io, resumable upload protocol 1.0.0. */
export const tusVersion = "1.0.0"

/** The Content-Type of bytes that are appended. */
export const offsetStream = "application/offset+octet-stream"

/**
 * The part of an upload that a client makes by itself: all of a file; a part of one, which becomes no file; the file that parts
 * make, by their ids.
 */
export type UploadKind =
  | { readonly _tag: "Whole" }
  | { readonly _tag: "Part" }
  | { readonly _tag: "Joined"; readonly parts: ReadonlyArray<string> }

/** A header's value by its lower-case name; "" where it is absent. */
export type HeaderOf = (name: string) => string

const fault = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

const absent = Result.succeed(undefined)

/** A number of bytes; undefined where the header is absent. */
export const readBytes = (
  headerOf: HeaderOf,
  name: string
): Result.Result<number | undefined, FieldFault> => {
  const text = headerOf(name.toLowerCase())
  if (text === "") return absent
  const bytes = /^\d{1,16}$/.test(text) ? Number(text) : Infinity
  return Number.isSafeInteger(bytes) ? Result.succeed(bytes) : fault(name, "expected a number of bytes")
}

/** The length of a new upload; null where it is told later. */
export const readLength = (headerOf: HeaderOf): Result.Result<number | null, FieldFault> => {
  const deferred = headerOf("upload-defer-length")
  const length = readBytes(headerOf, "Upload-Length")
  if (Result.isFailure(length)) return Result.fail(length.failure)
  if (deferred !== "" && deferred !== "1")
    return fault("Upload-Defer-Length", "expected 1, or no such header")
  if (deferred !== "" && length.success !== undefined)
    return fault("Upload-Defer-Length", "give this or Upload-Length, not both")
  if (deferred === "" && length.success === undefined)
    return fault("Upload-Length", "expected a number of bytes, or the header Upload-Defer-Length: 1")
  return Result.succeed(length.success ?? null)
}

/** @param uploads the path of uploads, with a slash at its end: parts are named by it, with or without an origin */
export const readKind = (
  concat: string,
  uploads: string,
  partsMax: number
): Result.Result<UploadKind, FieldFault> => {
  const field = "Upload-Concat"
  if (concat === "") return Result.succeed({ _tag: "Whole" })
  if (concat === "partial") return Result.succeed({ _tag: "Part" })
  const [, list] = /^final\s*;\s*(.*)$/s.exec(concat) ?? []
  if (list === undefined)
    return fault(field, "expected partial, or final; and the addresses of partial uploads")
  const parts: Array<string> = []
  for (const address of list.split(/\s+/).filter((text) => text !== "")) {
    const path = address.replace(/^https?:\/\/[^/?#]*/i, "")
    const id = path.startsWith(uploads) ? path.slice(uploads.length) : ""
    if (!/^upl_[0-9A-Za-z]{22}$/.test(id)) return fault(field, `expected addresses as ${uploads}upl_…`)
    parts.push(id)
  }
  if (parts.length === 0) return fault(field, "expected the address of a partial upload")
  if (parts.length > partsMax) return fault(field, `expected at most ${partsMax} partial uploads`)
  if (new Set(parts).size < parts.length) return fault(field, "a partial upload is named twice")
  return Result.succeed({ _tag: "Joined", parts })
}

/** The method that is meant, where a client cannot send it. */
export const methodOf = (method: string, override: string): string =>
  method === "POST" && override !== "" ? override.trim().toUpperCase() : method
