import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import type { MailFields } from "./MailFields.ts"
import { readMailFields } from "./MailReading.ts"

const bodyFault = (text: string) => Result.fail({ field: "body", text })

/** Reads JSON whose unknown fields are ignored, and may not nest without end. */
export const readJson = (bytes: Uint8Array): Result.Result<unknown, FieldFault> => {
  if (depthOf(bytes) > jsonDepthMax) return bodyFault(`nested deeper than ${jsonDepthMax}`)
  if (!isUtf8(bytes)) return bodyFault("expected UTF-8")
  try {
    return Result.succeed(JSON.parse(new TextDecoder().decode(bytes)))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return bodyFault("expected a valid JSON body")
  }
}

/** Reads the JSON of a mail. Its fields nest two deep. */
export const readMailJson = (bytes: Uint8Array, nowMillis: number): Result.Result<MailFields, FieldFault> =>
  Result.flatMap(readJson(bytes), (json) => readMailFields(json, nowMillis))

/** A mail that was read in a thread, or its fault. */
export type ReadMail = { readonly fields: MailFields } | { readonly fault: FieldFault }
