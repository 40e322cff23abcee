import { EventRecordInvalid } from "./EventRecord.ts"
import { dayMillis } from "./EventTime.ts"
import type { EventKind } from "./StoredEvent.ts"

/**
 * An event as a visitor-day folds it. Texts are *packed*: the RowBinary bytes of the string (varint length, UTF-8), one
 * byte per character. They are compared and copied into the visit's row, never read, so that draining neither decodes
 * nor encodes them.
 */
export interface VisitEvent {
  readonly kind: EventKind
  /** epoch milliseconds */
  readonly ts: number
  /** packed name of a custom event */
  readonly name: string
  readonly hostname: string
  readonly path: string
  /** packed id of the page view; `packedEmpty` for none */
  readonly pv: string
  readonly engagedMillis: number
  /** the packed columns `referrer` to `device`, one after the other */
  readonly attributes: string
}

/** An event and whose it is. */
export interface OwnedVisitEvent extends VisitEvent {
  readonly site: string
  /** UTC day of the identity, days since 1970-01-01 */
  readonly day: number
  readonly visitor: bigint
}

/** The columns of `events` that a visit takes over from its first event, in their order there. */
export const attributeColumns = [
  "referrer",
  "source",
  "channel",
  "utm_source",
  "utm_medium",
  "utm_campaign",
  "utm_term",
  "utm_content",
  "country",
  "browser",
  "browser_version",
  "os",
  "device"
] as const

export const packedEmpty = "\u0000"

/** Packs a text as RowBinary would write it. */
export const pack = (text: string): string => {
  const bytes = Buffer.from(text, "utf8")
  let rest = bytes.length
  let length = ""
  while (rest >= 128) {
    length += String.fromCharCode((rest & 127) | 128)
    rest >>>= 7
  }
  return length + String.fromCharCode(rest) + bytes.toString("latin1")
}

/** The text of a packed string. */
export const unpack = (packed: string): string => {
  let at = 0
  while (packed.charCodeAt(at) >= 128) at++
  return Buffer.from(packed.slice(at + 1), "latin1").toString("utf8")
}

const kinds: ReadonlyArray<EventKind | undefined> = [undefined, "pageview", "event", "engage"]

/** The end of the packed string that begins at `at`. */
const endOfText = (row: Buffer, at: number): number => {
  let length = 0
  let scale = 1
  for (let next = at; ; next++) {
    const byte = row[next]
    if (byte === undefined) throw new EventRecordInvalid("row ends within a text")
    length += (byte & 127) * scale
    if (byte < 128) return next + 1 + length
    scale *= 128
  }
}

/** The positions of the fields in a row, after the end of its site and the kind. */
const dayAt = 1
const timeAt = dayAt + 2
const visitorAt = timeAt + 4 + 8
const nameAt = visitorAt + 8

/** Writes another identity into the RowBinary row of an event that begins at `at`; its time stays. */
export const writeOwner = (
  row: Buffer,
  at: number,
  owner: { readonly day: number; readonly visitor: bigint }
): void => {
  const siteEnd = endOfText(row, at)
  const daysBetween = row.readUInt16LE(siteEnd + dayAt) - owner.day
  row.writeUInt16LE(owner.day, siteEnd + dayAt)
  row.writeUInt32LE(row.readUInt32LE(siteEnd + timeAt) + daysBetween * dayMillis, siteEnd + timeAt)
  row.writeBigUInt64LE(owner.visitor, siteEnd + visitorAt)
}

/** The day of the identity in the RowBinary row of an event. */
export const dayOfRow = (bytes: Uint8Array): number => {
  const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const at = endOfText(row, 0) + dayAt
  if (at + 2 > row.length) throw new EventRecordInvalid("row ends before its day")
  return row.readUInt16LE(at)
}

/** Reads what visits need from the RowBinary row of an event. */
export const visitEventOf = (bytes: Uint8Array): OwnedVisitEvent => {
  const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const siteEnd = endOfText(row, 0)
  const kind = kinds[row.readUInt8(siteEnd)]
  if (kind === undefined) throw new EventRecordInvalid("event of an unknown kind")
  const day = row.readUInt16LE(siteEnd + dayAt)
  const nameStart = siteEnd + nameAt
  const hostnameStart = endOfText(row, nameStart)
  const pathStart = endOfText(row, hostnameStart)
  const pvStart = endOfText(row, pathStart)
  const engagedStart = endOfText(row, pvStart)
  let end = engagedStart + 4
  for (let column = 0; column < attributeColumns.length; column++) end = endOfText(row, end)
  return {
    site: unpack(row.toString("latin1", 0, siteEnd)),
    kind,
    day,
    ts: day * dayMillis + row.readUInt32LE(siteEnd + timeAt),
    visitor: row.readBigUInt64LE(siteEnd + visitorAt),
    name: row.toString("latin1", nameStart, hostnameStart),
    hostname: row.toString("latin1", hostnameStart, pathStart),
    path: row.toString("latin1", pathStart, pvStart),
    pv: row.toString("latin1", pvStart, engagedStart),
    engagedMillis: row.readUInt32LE(engagedStart),
    attributes: row.toString("latin1", engagedStart + 4, end)
  }
}
