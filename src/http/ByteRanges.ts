import type { ByteRange } from "./FileBytes.ts"

/** The range that a `Range` header requests of a body of `sizeBytes`. Source: RFC 9110, 14.2. */
type RequestedRange =
  /** none, several, or not understood: the whole body, 200 */
  | { readonly _tag: "Whole" }
  | { readonly _tag: "Part"; readonly range: ByteRange }
  /** nothing of the body is in it: 416 */
  | { readonly _tag: "Unsatisfiable" }

const whole: RequestedRange = { _tag: "Whole" }
const unsatisfiable: RequestedRange = { _tag: "Unsatisfiable" }

export const requestedRange = (header: string | undefined, sizeBytes: number): RequestedRange => {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? "") ?? []
  if (first === undefined || last === undefined || (first === "" && last === "")) return whole
  if (first === "") {
    const length = Math.min(Number(last), sizeBytes)
    return length === 0 ? unsatisfiable : { _tag: "Part", range: { from: sizeBytes - length, to: sizeBytes } }
  }
  // Longer numbers than a double has are beyond the end of any file all the same.
  const from = Number(first)
  const to = last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes)
  if (last !== "" && Number(last) < from) return whole
  return from >= sizeBytes ? unsatisfiable : { _tag: "Part", range: { from, to } }
}

/** Whether `If-None-Match` names this entity tag, weakly compared. Source: RFC 9110, 13.1.2. */
export const isNoneMatch = (header: string | undefined, etag: string): boolean =>
  header !== undefined &&
  (header.trim() === "*" || header.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag))

/** Whether `If-Match` names this entity tag, strongly compared. Source: RFC 9110, 13.1.1. */
export const isMatch = (header: string, etag: string): boolean =>
  header.trim() === "*" || header.split(",").some((tag) => tag.trim() === etag)
