import { KeptBuffers } from "#src/infra/shares/KeptBuffers.ts"

/** Pieces of at most so many bytes, as slow clients send them: as many as clients may send in one turn. */
const short = new KeptBuffers(4 * 1024, { most: 256 })

/**
 * uWebSockets.js reads so much of a socket at a time, and no more. It reads on while its own buffer comes full each time, in
 * spite of a pause; with as many as these at hand such pieces are copied faster than most clients send.
 * Bursts of 40 are the rule on loopback, and some are of hundreds.
 */
const long = new KeptBuffers(512 * 1024, { most: 64, burstMost: 512 })

/** Pieces in between are copied into memory of their own, which costs little. */
const longFrom = 64 * 1024

const buffersFor = ({ length }: Uint8Array): KeptBuffers | undefined => {
  if (length <= short.bytes) return short
  return length >= longFrom && length <= long.bytes ? long : undefined
}

/** A copy of a piece, in a buffer that was used before: fresh memory for long ones costs as much as hashing them. */
export const copyOf = (piece: Uint8Array): Uint8Array => {
  const buffer = buffersFor(piece)?.take()
  if (buffer === undefined) return Buffer.from(piece)
  buffer.set(piece)
  return buffer.subarray(0, piece.length)
}

/** The copy is not looked at any more. */
export const giveBack = (copy: Uint8Array): void => {
  short.giveBack(copy)
  long.giveBack(copy)
}
