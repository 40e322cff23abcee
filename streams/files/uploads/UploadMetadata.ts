import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"

/** Values by their keys; those that are no text are left out. */
export type UploadMetadata = ReadonlyMap<string, string>

const field = "Upload-Metadata"
const fault = (text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** Reads `key base64,key base64,key`: keys of printable ASCII, each once; a value may be absent, which makes it "". */
export const readMetadata = (header: string, bytesMax: number): Result.Result<UploadMetadata, FieldFault> => {
  const values = new Map<string, string>()
  if (header.length > bytesMax) return fault(`expected at most ${bytesMax} bytes`)
  if (header.trim() === "") return Result.succeed(values)
  const seen = new Set<string>()
  for (const pair of header.split(",")) {
    const [key = "", encoded = "", more] = pair.trim().split(/ +/)
    if (!/^[\u0021-\u002b\u002d-\u007e]+$/.test(key) || more !== undefined)
      return fault("expected keys and values in Base64 behind a space, with commas between them")
    if (seen.has(key)) return fault(`${key} is there twice`)
    seen.add(key)
    if (!base64.test(encoded)) return fault(`the value of ${key} is not Base64`)
    const bytes = Buffer.from(encoded, "base64")
    if (isUtf8(bytes)) values.set(key, bytes.toString())
  }
  return Result.succeed(values)
}
