import { EventRecordInvalid } from "./EventRecord.ts"

/**
 * A record of the log of imports: which line of which import it is, then the record of its event.
 * 0 u8 version, 1 u32 line, 5 u8 bytes of the name, the name as UTF-8, the `EventRecord`; little-endian.
 */
const version = 1
const nameAt = 6

interface ImportPlace {
  /** of the import */
  readonly name: string
  /** counted over the whole import, from 0 */
  readonly line: number
}

/** `event` is what `EventRecord.encode` gave; it is copied. The name has at most 64 UTF-16 units. */
export const encode = ({ line, name }: ImportPlace, event: Uint8Array): Uint8Array => {
  const nameBytes = Buffer.byteLength(name)
  const bytes = Buffer.allocUnsafeSlow(nameAt + nameBytes + event.length)
  bytes[0] = version
  bytes.writeUInt32LE(line, 1)
  bytes.writeUInt8(nameBytes, 5)
  bytes.write(name, nameAt)
  bytes.set(event, nameAt + nameBytes)
  return bytes
}

const endOfName = (record: Uint8Array): number => {
  const end = nameAt + (record[5] ?? 0)
  if (record[0] !== version || record.length < end)
    throw new EventRecordInvalid(`no record of an import: version ${record[0]}, ${record.length} bytes`)
  return end
}

/** Throws `EventRecordInvalid` on anything that `encode` did not write. */
export const placeOf = (record: Uint8Array): ImportPlace => {
  const bytes = Buffer.from(record.buffer, record.byteOffset, record.length)
  return { line: bytes.readUInt32LE(1), name: bytes.toString("utf8", nameAt, endOfName(record)) }
}

/** The event's own record in it, without copying. */
export const eventOf = (record: Uint8Array): Uint8Array => record.subarray(endOfName(record))
