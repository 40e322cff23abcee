import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { parseInstant } from "#schemas/core/Timestamp.ts"

/** The description of a file that is uploaded, whichever way it comes. Source: contract/files#uploads. */
export interface UploadFields {
  /** the file's own time; null: that of the upload */
  readonly modifiedAt: Date | null
  /** lower-case hexadecimal, of the bytes that are sent */
  readonly sha256: string | null
  /** the version that has to be the current one, `none`, or null: whatever is there */
  readonly ifVersion: string | null
  readonly isEncrypted: boolean
  readonly encryptionKeyId: string | null
  /** a link comes with the answer */
  readonly link: boolean
}

type Read<A> = Result.Result<A, FieldFault>

const fault = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

const readFlag = (field: string, text: string): Read<boolean> => {
  if (text === "true" || text === "1") return Result.succeed(true)
  if (text === "false" || text === "0" || text === "") return Result.succeed(false)
  return fault(field, "expected true or false")
}

const readModifiedAt = (text: string): Read<Date> => {
  const instant = parseInstant(text)
  return instant === undefined
    ? fault("modifiedAt", "expected an ISO-8601 instant with an offset, such as 2026-11-21T08:30:00Z")
    : Result.succeed(instant)
}

const readSha256 = (text: string): Read<string> =>
  /^[0-9a-f]{64}$/i.test(text)
    ? Result.succeed(text.toLowerCase())
    : fault("sha256", "expected 64 hexadecimal digits")

const readIfVersion = (text: string): Read<string> =>
  /^(?:none|fv_[0-9A-Za-z]{22})$/.test(text)
    ? Result.succeed(text)
    : fault("ifVersion", "expected the id of a version (fv_…), or none")

const readKeyId = (text: string): Read<string> =>
  /^[\u0021-\u007e]{1,100}$/.test(text)
    ? Result.succeed(text)
    : fault("encryptionKeyId", "expected the id of a key: at most 100 printable characters of ASCII")

const orNull = <A>(text: string, read: (text: string) => Read<A>): Read<A | null> =>
  text === "" ? Result.succeed(null) : read(text)

/** @param textOf the text of a field by its name; "" where it is absent. The first fault counts. */
export const readUploadFields = (textOf: (field: string) => string): Read<UploadFields> =>
  Result.gen(function* () {
    const modifiedAt = yield* orNull(textOf("modifiedAt"), readModifiedAt)
    const sha256 = yield* orNull(textOf("sha256"), readSha256)
    const ifVersion = yield* orNull(textOf("ifVersion"), readIfVersion)
    const isEncrypted = yield* readFlag("clientEncrypted", textOf("clientEncrypted"))
    const encryptionKeyId = yield* orNull(textOf("encryptionKeyId"), readKeyId)
    if (encryptionKeyId !== null && !isEncrypted)
      yield* fault("encryptionKeyId", "is for bytes with clientEncrypted=true")
    const link = yield* readFlag("link", textOf("link"))
    return { modifiedAt, sha256, ifVersion, isEncrypted, encryptionKeyId, link }
  })
