import { dayMillis } from "./EventTime.ts"
import { kindNumbers } from "./StoredEvent.ts"
import type { EventKind, StoredEvent } from "./StoredEvent.ts"

/**
 * The log record of an accepted event: a header of `headerBytes` (version, then the hash of the caller's event id, 0
 * when it gave none), then the RowBinary encoding of its `events` row without the leading (log_id, seq). A sink
 * puts those two before each row, and sends the values as they are, column by column.
 * Source: ClickHouse, formats RowBinary (strings as varint length and bytes, integers little-endian).
 */
export const version = 2

export const headerBytes = 9

/** The record is shorter than it says, longer, or of another version: the log holds something else than events. */
export class EventRecordInvalid extends Error {
  readonly _tag = "EventRecordInvalid"
}

const textDecoder = new TextDecoder()
const kindNames: ReadonlyArray<EventKind | undefined> = [undefined, "pageview", "event", "engage"]

let buffer = Buffer.allocUnsafeSlow(16_384)
let view = new DataView(buffer.buffer)

const writeVarint = (bytes: Uint8Array, at: number, value: number): number => {
  let rest = value
  let next = at
  while (rest >= 128) {
    bytes[next++] = (rest & 127) | 128
    rest >>>= 7
  }
  bytes[next] = rest
  return next + 1
}

const writeLongString = (bytes: Buffer, at: number, text: string): number => {
  const from = writeVarint(bytes, at, Buffer.byteLength(text))
  return from + bytes.write(text, from)
}

/** Most strings are empty or short ASCII: writing their units in place is cheaper than a call into the runtime. */
const writeString = (bytes: Buffer, at: number, text: string): number => {
  const length = text.length
  if (length > 63) return writeLongString(bytes, at, text)
  bytes[at] = length
  const from = at + 1
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > 127) return writeLongString(bytes, at, text)
    bytes[from + index] = unit
  }
  return from + length
}

const writeStrings = (bytes: Buffer, at: number, texts: ReadonlyArray<string>): number => {
  let next = writeVarint(bytes, at, texts.length)
  for (const text of texts) next = writeString(bytes, next, text)
  return next
}

const writeInt64 = (at: number, value: number): void => {
  const high = Math.floor(value / 4_294_967_296)
  view.setUint32(at, value - high * 4_294_967_296, true)
  view.setInt32(at + 4, high, true)
}

/** kind, day, at_ms, lag_ms, visitor. */
const fixedBytes = 23

/** More than the record can take: three bytes a unit, five for a length, and the numbers. */
const bytesAtMost = (event: StoredEvent): number => {
  let units =
    event.site.length + event.name.length + event.hostname.length + event.path.length + event.pv.length
  units += event.referrer.length + event.source.length + event.channel.length + event.country.length
  units += event.utmSource.length + event.utmMedium.length + event.utmCampaign.length + event.utmTerm.length
  units += event.utmContent.length + event.browser.length + event.browserVersion.length
  units += event.os.length + event.device.length
  for (const key of event.propsKeys) units += key.length
  for (const value of event.propsValues) units += value.length
  return 3 * units + 5 * (20 + event.propsKeys.length + event.propsValues.length) + headerBytes + 64
}

/**
 * The event's record. The bytes are only good until the next call: the encoder writes into one buffer of its own, and
 * the log copies what it is given. `idHash` is the hash of the caller's event id, 0n for none.
 */
export const encode = (event: StoredEvent, idHash = 0n): Uint8Array => {
  const needed = bytesAtMost(event)
  if (needed > buffer.length) {
    buffer = Buffer.allocUnsafeSlow(needed * 2)
    view = new DataView(buffer.buffer)
  }
  const bytes = buffer
  bytes[0] = version
  view.setBigUint64(1, idHash, true)
  let at = writeString(bytes, headerBytes, event.site)
  bytes[at] = kindNumbers[event.kind]
  view.setUint16(at + 1, event.day, true)
  view.setUint32(at + 3, event.ts - event.day * dayMillis, true)
  writeInt64(at + 7, event.received - event.ts)
  view.setBigUint64(at + 15, event.visitor, true)
  at = writeString(bytes, at + fixedBytes, event.name)
  at = writeString(bytes, at, event.hostname)
  at = writeString(bytes, at, event.path)
  at = writeString(bytes, at, event.pv)
  view.setUint32(at, event.engagedMillis, true)
  at = writeString(bytes, at + 4, event.referrer)
  at = writeString(bytes, at, event.source)
  at = writeString(bytes, at, event.channel)
  at = writeString(bytes, at, event.utmSource)
  at = writeString(bytes, at, event.utmMedium)
  at = writeString(bytes, at, event.utmCampaign)
  at = writeString(bytes, at, event.utmTerm)
  at = writeString(bytes, at, event.utmContent)
  at = writeString(bytes, at, event.country)
  at = writeString(bytes, at, event.browser)
  at = writeString(bytes, at, event.browserVersion)
  at = writeString(bytes, at, event.os)
  at = writeString(bytes, at, event.device)
  at = writeStrings(bytes, at, event.propsKeys)
  at = writeStrings(bytes, at, event.propsValues)
  // No Buffer: its `slice` would not copy.
  return new Uint8Array(bytes.buffer, 0, at)
}

/** The RowBinary row inside a record, without copying. */
export const rowOf = (record: Uint8Array): Uint8Array => {
  checkHeader(record)
  return record.subarray(headerBytes)
}

/** The record, which is checked to be one: its row begins `headerBytes` into it. */
export const checked = (record: Uint8Array): Uint8Array => {
  checkHeader(record)
  return record
}

/** The hash of the caller's event id in a record; 0n for none. */
export const idHashOf = (record: Uint8Array): bigint => {
  checkHeader(record)
  return new DataView(record.buffer, record.byteOffset, headerBytes).getBigUint64(1, true)
}

/** The site of a record's event. */
export const siteOf = (record: Uint8Array): string => {
  checkHeader(record)
  return new Reader(record).string()
}

const checkHeader = (record: Uint8Array): void => {
  if (record.length < headerBytes) throw new EventRecordInvalid(`record of ${record.length} bytes`)
  if (record[0] !== version) throw new EventRecordInvalid(`record of version ${record[0]}`)
}

class Reader {
  readonly bytes: Uint8Array
  readonly view: DataView
  at = headerBytes

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  take(length: number): number {
    const from = this.at
    if (from + length > this.bytes.length)
      throw new EventRecordInvalid(`record ends within a field at ${from}`)
    this.at = from + length
    return from
  }

  varint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.view.getUint8(this.take(1))
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
    throw new EventRecordInvalid(`length over five bytes at ${this.at}`)
  }

  string(): string {
    const length = this.varint()
    if (length === 0) return ""
    const from = this.take(length)
    return textDecoder.decode(this.bytes.subarray(from, from + length))
  }

  strings(): ReadonlyArray<string> {
    const length = this.varint()
    const texts: Array<string> = []
    for (let index = 0; index < length; index++) texts.push(this.string())
    return texts
  }

  int64(): number {
    const from = this.take(8)
    return this.view.getUint32(from, true) + this.view.getInt32(from + 4, true) * 4_294_967_296
  }

  kind(): EventKind {
    const number = this.view.getUint8(this.take(1))
    const kind = kindNames[number]
    if (kind === undefined) throw new EventRecordInvalid(`event of kind ${number}`)
    return kind
  }
}

/** The event of a record. Throws `EventRecordInvalid` on anything that `encode` did not write. */
export const decode = (record: Uint8Array): StoredEvent => {
  checkHeader(record)
  const reader = new Reader(record)
  // Property initialisers run in the order in which they are written, which is the order of the columns.
  const site = reader.string()
  const kind = reader.kind()
  const day = reader.view.getUint16(reader.take(2), true)
  const ts = day * dayMillis + reader.view.getUint32(reader.take(4), true)
  const event: StoredEvent = {
    site,
    kind,
    ts,
    received: ts + reader.int64(),
    visitor: reader.view.getBigUint64(reader.take(8), true),
    day,
    name: reader.string(),
    hostname: reader.string(),
    path: reader.string(),
    pv: reader.string(),
    engagedMillis: reader.view.getUint32(reader.take(4), true),
    referrer: reader.string(),
    source: reader.string(),
    channel: reader.string(),
    utmSource: reader.string(),
    utmMedium: reader.string(),
    utmCampaign: reader.string(),
    utmTerm: reader.string(),
    utmContent: reader.string(),
    country: reader.string(),
    browser: reader.string(),
    browserVersion: reader.string(),
    os: reader.string(),
    device: reader.string(),
    propsKeys: reader.strings(),
    propsValues: reader.strings()
  }
  if (reader.at !== record.length) throw new EventRecordInvalid(`${record.length - reader.at} bytes too many`)
  return event
}
