import { crc32c } from "./Crc32c.ts"

/**
 * The progress of a consumer. Everything below `committed` is in the sink; [committed, inFlightTo) may be, wholly or in
 * part, because a batch up to `inFlightTo` had been begun.
 */
export interface Checkpoint {
  readonly committed: number
  readonly inFlightTo: number
}

/** 0 u32 CRC-32C of the rest, 4 u32 version, 8 u64 log id, 16 u64 committed, 24 u64 in flight to; little-endian. */
const size = 32
const version = 1

/** Two slots, each in a sector of its own, so that the write of one cannot tear the other. */
const slotBytes = 512

/** A checkpoint's file: written in place, by turns, as on a full disk no new file could be made. */
export const fileBytes = 2 * slotBytes

export const positionOf = (slot: 0 | 1): number => slot * slotBytes

export const encode = (checkpoint: Checkpoint, logId: bigint): Uint8Array => {
  const bytes = new Uint8Array(size)
  const view = new DataView(bytes.buffer)
  view.setUint32(4, version, true)
  view.setBigUint64(8, logId, true)
  view.setBigUint64(16, BigInt(checkpoint.committed), true)
  view.setBigUint64(24, BigInt(checkpoint.inFlightTo), true)
  view.setUint32(0, crc32c(bytes, 4, size), true)
  return bytes
}

/** A new file: the checkpoint in slot 0, and nothing in the other. */
export const encodeFile = (checkpoint: Checkpoint, logId: bigint): Uint8Array => {
  const bytes = new Uint8Array(fileBytes)
  bytes.set(encode(checkpoint, logId), positionOf(0))
  return bytes
}

export interface Found extends Checkpoint {
  readonly slot: 0 | 1
}

/**
 * The later of a file's two checkpoints: both numbers only ever grow. A slot that is torn was never confirmed.
 * Undefined where there is none of this log, and for a file of another length: the later may be missing.
 */
export const decodeFile = (bytes: Uint8Array | undefined, logId: bigint): Found | undefined => {
  if (bytes?.length !== fileBytes) return undefined
  const [first, second] = [decode(bytes, 0, logId), decode(bytes, 1, logId)]
  if (first === undefined || second === undefined) return first ?? second
  const isSecond =
    second.committed > first.committed ||
    (second.committed === first.committed && second.inFlightTo > first.inFlightTo)
  return isSecond ? second : first
}

const decode = (file: Uint8Array, slot: 0 | 1, logId: bigint): Found | undefined => {
  const bytes = file.subarray(positionOf(slot), positionOf(slot) + size)
  const view = new DataView(bytes.buffer, bytes.byteOffset, size)
  if (view.getUint32(0, true) !== crc32c(bytes, 4, size)) return undefined
  if (view.getUint32(4, true) !== version || view.getBigUint64(8, true) !== logId) return undefined
  const committed = Number(view.getBigUint64(16, true))
  return { committed, inFlightTo: Number(view.getBigUint64(24, true)), slot }
}

/**
 * The start of a consumer without a readable checkpoint: the oldest record, with everything uncertain, so that the sink
 * is asked for its rows instead of getting them twice.
 */
export const uncertain = (firstOffset: number, endOffset: number): Checkpoint => ({
  committed: firstOffset,
  inFlightTo: endOffset
})
