import { kindNumbers } from "./StoredEvent.ts"
import type { EventKind, StoredEvent } from "./StoredEvent.ts"

/**
 * The log record of an accepted event: a header of `headerBytes` (version, then the hash of the caller's event id, 0
 * when it gave none), then the RowBinary encoding of its `events` row without the leading (log_id, seq). A sink
 * prefixes those two per row and concatenates, so that draining decodes nothing.
 * Source: ClickHouse, formats RowBinary (strings as varint length and bytes, integers little-endian).
 */
export const version = 1

export const headerBytes = 9

/** The record is shorter than it says, longer, or of another version: the log holds something else than events. */
export class EventRecordInvalid extends Error {
  readonly _tag = "EventRecordInvalid"
}

const textDecoder = new TextDecoder()
const kindNames: ReadonlyArray<EventKind | undefined> = [undefined, "pageview", "event", "engage"]

let buffer = Buffer.allocUnsafeSlow(16_384)
let position = 0

const reserve = (bytes: number): void => {
  if (position + bytes <= buffer.length) return
  const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, position + bytes))
  buffer.copy(larger, 0, 0, position)
  buffer = larger
}

const writeVarint = (value: number): void => {
  let rest = value
  while (rest >= 128) {
    buffer[position++] = (rest & 127) | 128
    rest >>>= 7
  }
  buffer[position++] = rest
}

const writeLongString = (text: string): void => {
  reserve(5 + text.length * 3)
  writeVarint(Buffer.byteLength(text))
  position += buffer.write(text, position)
}

/** Most strings are short ASCII: copying their units in place is cheaper than a call into the runtime's encoder. */
const writeString = (text: string): void => {
  const length = text.length
  if (length > 63) return writeLongString(text)
  reserve(length + 1)
  const bytes = buffer
  let at = position
  bytes[at++] = length
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index)
    if (unit > 127) return writeLongString(text)
    bytes[at++] = unit
  }
  position = at
}

const writeStrings = (texts: ReadonlyArray<string>): void => {
  reserve(5)
  writeVarint(texts.length)
  for (const text of texts) writeString(text)
}

const writeMillis = (millis: number): void => {
  const high = Math.floor(millis / 4_294_967_296)
  buffer.writeUInt32LE(millis - high * 4_294_967_296, position)
  buffer.writeInt32LE(high, position + 4)
  position += 8
}

/**
 * The event's record. The bytes are only good until the next call: the encoder writes into one buffer of its own, and
 * the log copies what it is given. `idHash` is the hash of the caller's event id (`EventIds.hashOf`), 0n for none.
 */
export const encode = (event: StoredEvent, idHash = 0n): Uint8Array => {
  position = headerBytes
  buffer[0] = version
  buffer.writeBigUInt64LE(idHash, 1)
  writeString(event.site)
  reserve(1 + 8 + 8 + 8 + 2)
  buffer[position++] = kindNumbers[event.kind]
  writeMillis(event.ts)
  writeMillis(event.received)
  buffer.writeBigUInt64LE(event.visitor, position)
  buffer.writeUInt16LE(event.day, position + 8)
  position += 10
  writeString(event.name)
  writeString(event.hostname)
  writeString(event.path)
  writeString(event.pv)
  reserve(4)
  position = buffer.writeUInt32LE(event.engagedMillis, position)
  writeString(event.referrer)
  writeString(event.source)
  writeString(event.channel)
  writeString(event.utmSource)
  writeString(event.utmMedium)
  writeString(event.utmCampaign)
  writeString(event.utmTerm)
  writeString(event.utmContent)
  writeString(event.country)
  writeString(event.browser)
  writeString(event.browserVersion)
  writeString(event.os)
  writeString(event.device)
  writeStrings(event.propsKeys)
  writeStrings(event.propsValues)
  return buffer.subarray(0, position)
}

/** The RowBinary row inside a record, without copying. */
export const rowOf = (record: Uint8Array): Uint8Array => {
  checkHeader(record)
  return record.subarray(headerBytes)
}

/** The hash of the caller's event id in a record; 0n for none. */
export const idHashOf = (record: Uint8Array): bigint => {
  checkHeader(record)
  return new DataView(record.buffer, record.byteOffset, headerBytes).getBigUint64(1, true)
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

  millis(): number {
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
  const event: StoredEvent = {
    site: reader.string(),
    kind: reader.kind(),
    ts: reader.millis(),
    received: reader.millis(),
    visitor: reader.view.getBigUint64(reader.take(8), true),
    day: reader.view.getUint16(reader.take(2), true),
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
