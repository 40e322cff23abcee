import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { jsonFaultOf } from "#schemas/core/JsonFitness.ts"
import { mediaTypeOf } from "#schemas/core/MediaTypes.ts"
import { parseInstant } from "#schemas/core/Timestamp.ts"
import { readAddress, readAddresses, readName } from "./Addresses.ts"
import { decodeBase64 } from "./Base64.ts"
import type { MailAttachment, Mailbox, MailFields } from "./MailFields.ts"
import { readMailHeaders } from "./MailHeaders.ts"

const recipientsMax = 50
const subjectMax = 998
/** Bytes in UTF-8, of each of the two. */
const bodyBytesMax = 2_097_152
const attachmentsMax = 20
const filenameMax = 255
const daysAheadMax = 30
const dayMillis = 86_400_000

type Read<A> = Result.Result<A, FieldFault>

const fault = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

/**
 * Reads the fields of a mail from JSON that was parsed. Unknown ones are ignored; null is absent, and so is "" where a
 * field may be. A fault is the first one, in the order of the fields; an error says it as `field: text`.
 */
export const readMailFields = (body: unknown, nowMillis: number): Result.Result<MailFields, FieldFault> => {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return fault("body", "expected object")
  const given = (name: string): unknown =>
    Object.hasOwn(body, name) ? (Reflect.get(body, name) ?? undefined) : undefined
  return Result.gen(function* () {
    const from = yield* readFrom(given("from"), given("name"))
    const recipients = yield* readRecipients(given)
    const replyTo = yield* readReplyTo(given("reply_to"))
    const subject = yield* readSubject(given("subject"))
    const html = yield* readBody("html", given("html"))
    const text = yield* readBody("text", given("text"))
    if (html === null && text === null) yield* fault("html", "is required where there is no text")
    const attachments = yield* readAttachments(given("attachments"))
    const custom = yield* readHeaders(given("headers"))
    const sendAtMillis = yield* readSendAt(given("send_at"), nowMillis)
    const isUnsubscribe = yield* readUnsubscribe(given("unsubscribe"))
    const isBulk = isUnsubscribe || custom.unsubscribeUrl !== null || custom.campaign !== null
    return { from, ...recipients, replyTo, subject, html, text, attachments, ...custom, isBulk, sendAtMillis }
  })
}

const readText = (field: string, value: unknown): Read<string> =>
  typeof value === "string" ? Result.succeed(value) : fault(field, "expected text")

const readOptional = (field: string, value: unknown): Read<string | null> =>
  value === undefined || value === "" ? Result.succeed(null) : readText(field, value)

const readFrom = (from: unknown, name: unknown): Read<Mailbox> =>
  Result.gen(function* () {
    if (from === undefined) return yield* fault("from", "is required")
    const mailbox = yield* readAddress("from", yield* readText("from", from))
    const text = yield* readOptional("name", name)
    const beside = text === null ? null : yield* readName("name", text)
    return beside === null ? mailbox : { ...mailbox, name: beside }
  })

type Recipients = Pick<MailFields, "to" | "cc" | "bcc">

/** Case decides nothing: hosts that tell addresses apart by it are unheard of, a mail sent twice is not. */
const readRecipients = (given: (name: string) => unknown): Read<Recipients> =>
  Result.gen(function* () {
    const seen = new Set<string>()
    const lists: Record<keyof Recipients, ReadonlyArray<Mailbox>> = { to: [], cc: [], bcc: [] }
    for (const field of ["to", "cc", "bcc"] as const) {
      const value = given(field)
      if (field === "to" && value === undefined) yield* fault(field, "is required")
      const text = field === "to" ? yield* readText(field, value) : yield* readOptional(field, value)
      const mailboxes = text === null ? [] : yield* readAddresses(field, text)
      lists[field] = mailboxes.filter(({ address }) => {
        const key = address.toLowerCase()
        return !seen.has(key) && seen.add(key)
      })
      if (seen.size > recipientsMax)
        yield* fault(field, `at most ${recipientsMax} recipients in to, cc and bcc`)
    }
    return lists
  })

const readReplyTo = (value: unknown): Read<Mailbox | null> =>
  Result.flatMap(readOptional("reply_to", value), (text) =>
    text === null ? Result.succeed(null) : readAddress("reply_to", text)
  )

/** White space around it would be lost where it is a header. */
const readSubject = (value: unknown): Read<string> => {
  if (value === undefined) return fault("subject", "is required")
  const subject = typeof value === "string" ? value.trim() : ""
  if (typeof value !== "string" || subject === "" || subject.length > subjectMax)
    return fault("subject", `expected text of 1 to ${subjectMax} characters`)
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f]/.test(value)) return fault("subject", "control characters are not taken")
  return fit("subject", subject)
}

/** Refuses NUL, and half of a surrogate pair, which has no UTF-8. */
const fit = (field: string, text: string): Read<string> => {
  const found = jsonFaultOf(text, { isNulRefused: true })
  return found === undefined ? Result.succeed(text) : fault(field, found.text)
}

const readBody = (field: string, value: unknown): Read<string | null> =>
  Result.flatMap(readOptional(field, value), (text) => {
    if (text === null) return Result.succeed(null)
    // UTF-8 is as long as the text or longer: a text of 30 MiB is refused without being measured.
    if (text.length > bodyBytesMax || Buffer.byteLength(text) > bodyBytesMax)
      return fault(field, `at most ${bodyBytesMax} bytes`)
    return fit(field, text)
  })

const readAttachments = (value: unknown): Read<ReadonlyArray<MailAttachment>> => {
  if (value === undefined) return Result.succeed([])
  if (!Array.isArray(value)) return fault("attachments", "expected a list of {filename, content}")
  if (value.length > attachmentsMax) return fault("attachments", `at most ${attachmentsMax}`)
  // A hole of a sparse array counts as undefined.
  return Result.all(Array.from(value, (item, index) => readAttachment(`attachments[${index}]`, item)))
}

const readAttachment = (field: string, value: unknown): Read<MailAttachment> => {
  if (typeof value !== "object" || value === null) return fault(field, "expected {filename, content}")
  const given = (name: string): Read<unknown> => {
    const member: unknown = Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
    return member === undefined || member === null
      ? fault(`${field}.${name}`, "is required")
      : Result.succeed(member)
  }
  return Result.gen(function* () {
    const filename = yield* readFilename(`${field}.filename`, yield* given("filename"))
    const encoded = yield* readText(`${field}.content`, yield* given("content"))
    const content = yield* Result.mapError(decodeBase64(encoded), (text) => ({
      field: `${field}.content`,
      text
    }))
    return { filename, contentType: mediaTypeOf(filename) ?? "application/octet-stream", content }
  })
}

/** The part of a path behind its last slash of either kind: some browsers and scripts send paths. */
const readFilename = (field: string, value: unknown): Read<string> => {
  const given = typeof value === "string" ? value : ""
  const name = given.slice(Math.max(given.lastIndexOf("/"), given.lastIndexOf("\\")) + 1).trim()
  if (name === "" || name === "." || name === ".." || name.length > filenameMax)
    return fault(field, `expected a name of 1 to ${filenameMax} characters`)
  if (/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(given))
    return fault(field, "control characters are not taken")
  return fit(field, name)
}

const readHeaders = (value: unknown) => {
  if (value === undefined) return readMailHeaders({})
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return fault("headers", "expected an object of texts")
  return readMailHeaders(value)
}

const readSendAt = (value: unknown, nowMillis: number): Read<number | null> => {
  if (value === undefined) return Result.succeed(null)
  const instant = typeof value === "string" ? parseInstant(value) : undefined
  if (instant === undefined)
    return fault("send_at", "expected an ISO-8601 instant with an offset, such as 2026-11-21T08:30:00Z")
  if (instant.getTime() > nowMillis + daysAheadMax * dayMillis)
    return fault("send_at", `at most ${daysAheadMax} days ahead`)
  return Result.succeed(instant.getTime())
}

const readUnsubscribe = (value: unknown): Read<boolean> =>
  value === undefined || typeof value === "boolean"
    ? Result.succeed(value ?? false)
    : fault("unsubscribe", "expected true or false")
