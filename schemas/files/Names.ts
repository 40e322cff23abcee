import { Effect, Schema } from "effect"
import { type BadRequest, invalidField } from "../core/Problem.ts"

/** Bytes of a name in UTF-8. Source: contract/files#names. */
const nameBytes = 255

/** Bytes of a path within its bucket. */
export const pathBytes = 2_048

const nameExpected =
  "expected a name of 1 to 255 bytes of UTF-8, without / and control characters, and not . or .."

const bucketPattern = /^[a-zA-Z0-9._-]{1,100}$/u

const bucketExpected =
  "expected the name of a bucket: 1 to 100 letters, digits, dots, underscores and hyphens, and not . or .."

const encoder = new TextEncoder()

/** Bytes in UTF-8. */
export const utf8Bytes = (text: string): number => encoder.encode(text).length

const isDots = (name: string): boolean => name === "." || name === ".."

const isName = (name: string): boolean =>
  name !== "" &&
  !isDots(name) &&
  name.isWellFormed() &&
  !/[/\p{Cc}]/u.test(name) &&
  utf8Bytes(name.normalize("NFC")) <= nameBytes

/** The name of a bucket, a directory in the root. */
export const bucketName = (field: string, sent: string): Effect.Effect<string, BadRequest> =>
  bucketPattern.test(sent) && !isDots(sent)
    ? Effect.succeed(sent)
    : Effect.fail(invalidField(field, bucketExpected))

/** The name of a file, or of a directory in a bucket, in NFC. */
export const entryName = (field: string, sent: string): Effect.Effect<string, BadRequest> =>
  isName(sent) ? Effect.succeed(sent.normalize("NFC")) : Effect.fail(invalidField(field, nameExpected))

/** The names of a relative path, such as `a/b.txt`, in NFC. */
export const namesOfPath = (
  field: string,
  sent: string
): Effect.Effect<readonly [string, ...Array<string>], BadRequest> => {
  const [first = "", ...others] = sent.normalize("NFC").split("/")
  const names = [first, ...others] as const
  return names.every(isName)
    ? Effect.succeed(names)
    : Effect.fail(invalidField(field, `${nameExpected}, or several of them with / between`))
}

/** A name in a request. What it may be depends on its place. */
export const SentName = Schema.String.annotate({
  description:
    "Of a bucket: 1 to 100 letters, digits, dots, underscores and hyphens. Of others: 1 to 255 bytes of UTF-8 without / and control characters, kept in NFC. Never . or .."
})

/** A name as searches compare it: compatibility forms and case do not count. */
export const searchName = (name: string): string => name.normalize("NFKC").toLowerCase()
