import { crc32c } from "./Crc32c.ts"

/**
 * How far a consumer is. Everything below `committed` is in the sink; [committed, inFlightTo) may be, wholly or in
 * part, because a batch up to `inFlightTo` had been begun.
 */
export interface Checkpoint {
  readonly committed: number
  readonly inFlightTo: number
}

/** 0 u32 CRC-32C of the rest, 4 u32 version, 8 u64 log id, 16 u64 committed, 24 u64 in flight to; little-endian. */
const size = 32
const version = 1

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

/** Undefined for anything but a whole checkpoint of this log. */
export const decode = (bytes: Uint8Array | undefined, logId: bigint): Checkpoint | undefined => {
  if (bytes?.length !== size) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, size)
  if (view.getUint32(0, true) !== crc32c(bytes, 4, size)) return undefined
  if (view.getUint32(4, true) !== version || view.getBigUint64(8, true) !== logId) return undefined
  return { committed: Number(view.getBigUint64(16, true)), inFlightTo: Number(view.getBigUint64(24, true)) }
}

/**
 * Where a consumer without a readable checkpoint begins: at the oldest record, with everything uncertain, so that
 * the sink is asked for what it has instead of getting it twice.
 */
export const uncertain = (firstOffset: number, endOffset: number): Checkpoint => ({
  committed: firstOffset,
  inFlightTo: endOffset
})
