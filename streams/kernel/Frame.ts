import { crc32c } from "./Crc32c.ts"

/**
 * One group commit on disk. Little-endian:
 *
 *     0 u32 length of what follows byte 8      24 u64 wall clock of the commit, milliseconds
 *     4 u32 CRC-32C of what follows byte 8     32 u32 number of records
 *     8 u64 log id                             36 per record: u32 length, bytes
 *    16 u64 offset of the first record
 *
 * The log id in every frame keeps bytes of an older log, or of a record that looks like a frame, from being taken
 * for a frame of this one.
 */
export interface Frame {
  readonly baseOffset: number
  readonly count: number
  readonly appendedAtMillis: number
  /** the whole frame, header included */
  readonly bytes: Uint8Array
}

export const headerBytes = 36
export const recordHeaderBytes = 4
const prefixBytes = 8

interface FrameStamp {
  readonly logId: bigint
  readonly baseOffset: number
  readonly count: number
  readonly appendedAtMillis: number
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Writes one record at `at` and answers where the next one goes. The hot path: no view, no allocation. */
export const putRecord = (into: Uint8Array, at: number, record: Uint8Array): number => {
  const length = record.length
  into[at] = length
  into[at + 1] = length >>> 8
  into[at + 2] = length >>> 16
  into[at + 3] = length >>> 24
  into.set(record, at + recordHeaderBytes)
  return at + recordHeaderBytes + length
}

/** Fills in the header of a frame whose records are already in place. */
export const seal = (bytes: Uint8Array, stamp: FrameStamp): Frame => {
  const view = viewOf(bytes)
  view.setUint32(0, bytes.length - prefixBytes, true)
  view.setBigUint64(8, stamp.logId, true)
  view.setBigUint64(16, BigInt(stamp.baseOffset), true)
  view.setBigUint64(24, BigInt(stamp.appendedAtMillis), true)
  view.setUint32(32, stamp.count, true)
  view.setUint32(4, crc32c(bytes, prefixBytes, bytes.length), true)
  return { baseOffset: stamp.baseOffset, count: stamp.count, appendedAtMillis: stamp.appendedAtMillis, bytes }
}

/** The length of the frame at `at` by its own prefix; undefined when that is cut off or invalid. */
export const claimedBytes = (bytes: Uint8Array, at: number): number | undefined => {
  if (at + prefixBytes > bytes.length) return undefined
  const length = viewOf(bytes).getUint32(at, true) + prefixBytes
  return length < headerBytes + recordHeaderBytes ? undefined : length
}

/** The number of records in the prefix of the frame at `at`, whole or cut; undefined if it is none of this log. */
export const claimedCount = (bytes: Uint8Array, at: number, logId: bigint): number | undefined => {
  if (at + headerBytes > bytes.length) return undefined
  const view = viewOf(bytes)
  return view.getBigUint64(at + 8, true) === logId ? view.getUint32(at + 32, true) : undefined
}

/** The frame at `at`, or undefined when it is not a whole, undamaged frame of this log. */
export const frameAt = (bytes: Uint8Array, at: number, logId: bigint): Frame | undefined => {
  const length = claimedBytes(bytes, at)
  if (length === undefined || at + length > bytes.length) return undefined
  const view = viewOf(bytes)
  if (view.getBigUint64(at + 8, true) !== logId) return undefined
  if (view.getUint32(at + 4, true) !== crc32c(bytes, at + prefixBytes, at + length)) return undefined
  return {
    baseOffset: Number(view.getBigUint64(at + 16, true)),
    count: view.getUint32(at + 32, true),
    appendedAtMillis: Number(view.getBigUint64(at + 24, true)),
    bytes: bytes.subarray(at, at + length)
  }
}

/** Whether a frame of this log begins anywhere at or after `start`: told by its log id, proven by its checksum. */
export const hasFrameAfter = (bytes: Uint8Array, start: number, logId: bigint): boolean => {
  const id = new Uint8Array(8)
  new DataView(id.buffer).setBigUint64(0, logId, true)
  const haystack = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = haystack.indexOf(id, start + prefixBytes)
  while (at >= 0) {
    if (frameAt(bytes, at - prefixBytes, logId) !== undefined) return true
    at = haystack.indexOf(id, at + 1)
  }
  return false
}

/** Payload bytes of the frame, record headers not counted. */
export const payloadBytes = (frame: Frame): number =>
  frame.bytes.length - headerBytes - frame.count * recordHeaderBytes

/** Payload bytes of the frame's records at and above `offset`. */
export const payloadBytesFrom = (frame: Frame, offset: number): number => {
  if (offset <= frame.baseOffset) return payloadBytes(frame)
  const view = viewOf(frame.bytes)
  let at = headerBytes
  for (let skip = offset - frame.baseOffset; skip > 0; skip--)
    at += recordHeaderBytes + view.getUint32(at, true)
  return frame.bytes.length - at - (frame.baseOffset + frame.count - offset) * recordHeaderBytes
}
