import { EventRecordInvalid } from "./EventRecord.ts"
import { dayMillis } from "./EventTime.ts"
import { SharedTexts } from "./SharedTexts.ts"
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

/** Names, hostnames and paths of recent events. */
const shared = new SharedTexts(32_768)

/** Rows of a batch lie in few frames of a log: a view of the whole frame serves all of its rows. */
let frame: Buffer = Buffer.alloc(0)
let view = new DataView(frame.buffer)

/** Sites come in runs: the last one, packed and not. */
let packedSite = ""
let site = ""

const siteOf = (packed: string): string => {
  if (packed === packedSite) return site
  packedSite = packed
  site = unpack(packed)
  return site
}

/** Reads what visits need from the RowBinary row of an event, which begins `from` bytes into `bytes`. */
export const visitEventOf = (bytes: Uint8Array, from = 0): OwnedVisitEvent => {
  if (bytes.buffer !== frame.buffer) {
    frame = Buffer.from(bytes.buffer)
    view = new DataView(bytes.buffer)
  }
  const row = frame
  const start = bytes.byteOffset + from
  const siteEnd = endOfText(row, start)
  const kind = kinds[view.getUint8(siteEnd)]
  if (kind === undefined) throw new EventRecordInvalid("event of an unknown kind")
  const day = view.getUint16(siteEnd + dayAt, true)
  const nameStart = siteEnd + nameAt
  const hostnameStart = endOfText(row, nameStart)
  const pathStart = endOfText(row, hostnameStart)
  const pvStart = endOfText(row, pathStart)
  const engagedStart = endOfText(row, pvStart)
  let end = engagedStart + 4
  for (let column = 0; column < attributeColumns.length; column++) end = endOfText(row, end)
  if (end > bytes.byteOffset + bytes.length) throw new EventRecordInvalid("row ends within a text")
  return {
    site: siteOf(shared.get(row, start, siteEnd)),
    kind,
    day,
    ts: day * dayMillis + view.getUint32(siteEnd + timeAt, true),
    visitor: view.getBigUint64(siteEnd + visitorAt, true),
    name: shared.get(row, nameStart, hostnameStart),
    hostname: shared.get(row, hostnameStart, pathStart),
    path: shared.get(row, pathStart, pvStart),
    pv: engagedStart - pvStart === 1 ? packedEmpty : row.toString("latin1", pvStart, engagedStart),
    engagedMillis: view.getUint32(engagedStart, true),
    attributes: row.toString("latin1", engagedStart + 4, end)
  }
}
