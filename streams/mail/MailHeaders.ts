import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import type { MailFields } from "./MailFields.ts"

/** Headers that a sender gives. */
export type CustomHeaders = Pick<MailFields, "headers" | "unsubscribeUrl" | "campaign">

const headersMax = 20

/** Characters of a header, name and value. Source: RFC 5322 section 2.1.1, of a line. */
const headerLineMax = 998

const campaignMax = 100

const campaignHeader = "x-campaign-id"

const unsubscribeHeaders = new Set(["list-unsubscribe", "x-unsubscribe-url"])

/** Headers of the mail that begin with another word than X; the server writes the rest of its headers. */
const otherHeaders = new Set(["in-reply-to", "references", "auto-submitted"])

/** Relays take these for commands of the account that submits: the operator's, not the sender's. */
const relayCommands = [
  "x-smtpapi",
  "x-ses-",
  "x-mc-",
  "x-pm-",
  "x-mailgun-",
  "x-msys-",
  "x-mailin-",
  "x-mailjet-"
]

type Read<A> = Result.Result<A, string>

const printable = /^[\u0020-\u007e]*$/

const urlMax = headerLineMax - "List-Unsubscribe: <>".length

const readUrl = (text: string): Read<string> => {
  const url = text.startsWith("<") && text.endsWith(">") ? text.slice(1, -1) : text
  if (url.length > urlMax) return Result.fail(`at most ${urlMax} characters`)
  const parsed = /^[!#-;=?-~]+$/.test(url) ? URL.parse(url) : null
  const isTaken =
    parsed !== null && /^https?:$/.test(parsed.protocol) && `${parsed.username}${parsed.password}` === ""
  return isTaken
    ? Result.succeed(url)
    : Result.fail("expected one http or https URL in ASCII, without a password")
}

/** Message ids as RFC 5322 section 3.6.4 has them, and as lenient about what is within as other mailers are. */
const messageIds = /^<[!-;=?-~]+>(?: *<[!-;=?-~]+>)*$/

/** RFC 3834 section 5. */
const autoSubmitted = /^[A-Za-z][A-Za-z-]*(?: *;[\u0020-\u007e]*)?$/

const readValue = (name: string, text: string): Read<string> => {
  const value = text.trim()
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) return Result.fail("control characters are not taken")
  if (!text.isWellFormed()) return Result.fail("expected well-formed Unicode, not half of a surrogate pair")
  if (value === "") return Result.fail("expected text")
  if (unsubscribeHeaders.has(name.toLowerCase())) return readUrl(value)
  if (name.length + 2 + value.length > headerLineMax)
    return Result.fail(`at most ${headerLineMax} characters with its name`)
  return expectedValue(name.toLowerCase(), value)
}

const expectedValue = (lowerName: string, value: string): Read<string> => {
  if (lowerName === campaignHeader && !(printable.test(value) && value.length <= campaignMax))
    return Result.fail(`expected 1 to ${campaignMax} printable characters of ASCII`)
  if ((lowerName === "in-reply-to" || lowerName === "references") && !messageIds.test(value))
    return Result.fail("expected message ids in angle brackets")
  if (lowerName === "auto-submitted" && !autoSubmitted.test(value))
    return Result.fail("expected no, auto-generated or auto-replied")
  return Result.succeed(value)
}

const isAllowed = (lowerName: string): boolean => {
  if (unsubscribeHeaders.has(lowerName) || otherHeaders.has(lowerName)) return true
  return /^x-[a-z0-9._-]+$/.test(lowerName) && !relayCommands.some((prefix) => lowerName.startsWith(prefix))
}

/** Characters of a header's name that a fault repeats: it is the sender's, and may be long. */
const shownMax = 100

const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const fieldOf = (name: string): string => `headers.${name.slice(0, shownMax).replace(invisible, "\ufffd")}`

const readHeader = (name: string, value: unknown): Read<string> => {
  if (!isAllowed(name.toLowerCase())) return Result.fail("not allowed")
  return typeof value === "string" ? readValue(name, value) : Result.fail("expected text")
}

const fault = (field: string, text: string): Result.Result<never, FieldFault> => Result.fail({ field, text })

/** The member `headers` of a mail: an object of texts. Null is absent, names have no case. */
export const readMailHeaders = (given: object): Result.Result<CustomHeaders, FieldFault> => {
  const entries = Object.entries(given).filter(([, value]) => value !== null && value !== undefined)
  if (entries.length > headersMax) return fault("headers", `at most ${headersMax}`)
  const headers: Array<readonly [name: string, value: string]> = []
  const names = new Set<string>()
  let unsubscribeUrl: string | null = null
  let campaign: string | null = null
  for (const [name, value] of entries) {
    const read = readHeader(name, value)
    if (Result.isFailure(read)) return fault(fieldOf(name), read.failure)
    const lowerName = name.toLowerCase()
    if (names.has(lowerName)) return fault(fieldOf(name), "given twice")
    names.add(lowerName)
    if (!unsubscribeHeaders.has(lowerName)) {
      if (lowerName === campaignHeader) campaign = read.success
      headers.push([name, read.success])
    } else if (unsubscribeUrl === null || unsubscribeUrl === read.success) unsubscribeUrl = read.success
    else return fault(fieldOf(name), "another URL than the one before")
  }
  return Result.succeed({ headers, unsubscribeUrl, campaign })
}
