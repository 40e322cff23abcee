import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { domainNameOf } from "./DomainName.ts"
import type { Mailbox } from "./MailFields.ts"

/**
 * Addresses as RFC 5322 section 3.4 writes them, less what invites confusion: quoted local parts, comments, groups,
 * address literals and obsolete forms are refused. Whatever is accepted means the same to every parser.
 */

/** Characters of a list at most: 50 addresses with names of 200, escaped, fill half of it. */
export const addressListMax = 65_536

/** Characters of the name beside an address. */
const nameMax = 200

/** RFC 5321 section 4.5.3.1, and the 256 of a path less its angle brackets. */
const localPartMax = 64
const addressMax = 254

const atomCharacters = "-A-Za-z0-9!#$%&'*+/=?^_`{|}~"
const dotAtom = new RegExp(`^[${atomCharacters}]+(?:\\.[${atomCharacters}]+)*$`)

type Read<A> = Result.Result<A, string>

/** A bare address, or the reason against it: "" where there is nothing to add to its not being one. */
const readAddrSpec = (text: string): Read<Pick<Mailbox, "address" | "domain">> => {
  if (text.includes('"@')) return Result.fail("a quoted local part is not taken")
  if (/[()<>[\]:;\\,]/.test(text)) return Result.fail("comments, groups, literals and routes are not taken")
  const at = text.indexOf("@")
  if (at < 0) return Result.fail("")
  if (text.includes("@", at + 1)) return Result.fail("it has two @")
  const local = text.slice(0, at)
  // oxlint-disable-next-line no-control-regex
  if (/[^\u0000-\u007f]/.test(local)) return Result.fail("its local part is not ASCII")
  if (local.length > localPartMax)
    return Result.fail(`its local part is longer than ${localPartMax} characters`)
  const domain = domainNameOf(text.slice(at + 1))
  if (domain === undefined || !dotAtom.test(local)) return Result.fail("")
  const address = `${local}@${domain}`
  return address.length > addressMax
    ? Result.fail(`it is longer than ${addressMax} characters`)
    : Result.succeed({ address, domain })
}

/** An address alone, without name or brackets; undefined where the text is not one. */
export const addressOf = (text: string): Pick<Mailbox, "address" | "domain"> | undefined =>
  Result.getOrUndefined(readAddrSpec(text))

const control = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** Text with such a character reads as another: `Bank <a@b>` may be shown the other way round. */
const bidiControl = /\p{Bidi_Control}/u

const nameFault = (name: string): string | undefined => {
  if (!name.isWellFormed()) return "expected well-formed Unicode, not half of a surrogate pair"
  if (control.test(name)) return "control characters are not taken"
  if (bidiControl.test(name)) return "controls of the direction of text are not taken"
  return name.length > nameMax ? `at most ${nameMax} characters` : undefined
}

/** White space in a name is a single space, as it is where a header is folded. */
const spaced = (name: string): string => name.replace(/ +/g, " ").trim()

/** A display name as text, not as it is written in a header; null where it is blank. */
export const readName = (field: string, text: string): Result.Result<string | null, FieldFault> => {
  const name = spaced(text)
  const fault = nameFault(name)
  if (fault !== undefined) return Result.fail({ field, text: fault })
  return Result.succeed(name === "" ? null : name)
}

const quotedString = /^"(?:[^"\\]|\\.)*"$/u

/** Dots are an obsolete form that everybody writes: `Joe Q. Public <joe@example.com>`. */
const atom = new RegExp(`^[${atomCharacters}.\\u0080-\\u{10ffff}]+$`, "u")

/** Words between spaces: atoms and quoted strings. */
const word = /"(?:[^"\\]|\\.)*"[^ ]*|[^ ]+/gu

/** The name that stands before `<`. */
const readPhrase = (text: string): Read<string | null> => {
  const words: Array<string> = []
  for (const [part] of text.matchAll(word)) {
    if (quotedString.test(part)) words.push(part.slice(1, -1).replace(/\\(.)/gu, "$1"))
    else if (atom.test(part)) words.push(part)
    else return Result.fail("quote its name")
  }
  const name = spaced(words.join(" "))
  const fault = nameFault(name)
  if (fault !== undefined) return Result.fail(`its name: ${fault}`)
  return Result.succeed(name === "" ? null : name)
}

const readMailbox = (text: string): Read<Mailbox> => {
  if (control.test(text)) return Result.fail("control characters are not taken")
  const open = text.endsWith(">") ? text.lastIndexOf("<") : -1
  const spec = readAddrSpec(open < 0 ? text : text.slice(open + 1, -1))
  if (Result.isFailure(spec)) return Result.fail(spec.failure)
  if (open < 0) return Result.succeed({ ...spec.success, name: null })
  return Result.map(readPhrase(text.slice(0, open)), (name) => ({ ...spec.success, name }))
}

/** The parts of a list: commas within quotation marks do not separate. */
const partsOf = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let start = 0
  let isQuoted = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (isQuoted && character === "\\") index++
    else if (character === '"') isQuoted = !isQuoted
    else if (character === "," && !isQuoted) {
      parts.push(text.slice(start, index))
      start = index + 1
    }
  }
  parts.push(text.slice(start))
  return parts.map(withoutSpaces)
}

/** Without the spaces around it, and those alone: a line break at the end has to be refused. */
const withoutSpaces = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && text[start] === " ") start++
  while (end > start && text[end - 1] === " ") end--
  return text.slice(start, end)
}

/** Characters of a refused text that its fault repeats. */
const shownMax = 100

const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** As a JSON string of so many characters at most, without characters that are not seen. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > shownMax ? `${text.slice(0, shownMax)}…` : text).replace(
    invisible,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`
  )

const mailboxIn = (field: string, text: string): Result.Result<Mailbox, FieldFault> =>
  Result.mapError(readMailbox(text), (reason) => ({
    field,
    text: `${shown(text)} is not an address${reason === "" ? "" : `: ${reason}`}`
  }))

const tooLong = (field: string) => Result.fail({ field, text: `at most ${addressListMax} characters` })

/** A list separated by commas, at least one. A fault names its part: `to[1]: "a@" is not an address`. */
export const readAddresses = (
  field: string,
  text: string
): Result.Result<ReadonlyArray<Mailbox>, FieldFault> => {
  if (text.length > addressListMax) return tooLong(field)
  const mailboxes: Array<Mailbox> = []
  for (const [index, part] of partsOf(text).entries()) {
    const mailbox = mailboxIn(`${field}[${index}]`, part)
    if (Result.isFailure(mailbox)) return Result.fail(mailbox.failure)
    mailboxes.push(mailbox.success)
  }
  return Result.succeed(mailboxes)
}

/** One address. */
export const readAddress = (field: string, text: string): Result.Result<Mailbox, FieldFault> => {
  if (text.length > addressListMax) return tooLong(field)
  const [part = "", ...others] = partsOf(text)
  return others.length > 0 ? Result.fail({ field, text: "expected one address" }) : mailboxIn(field, part)
}
