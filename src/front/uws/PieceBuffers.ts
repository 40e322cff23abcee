/** uWebSockets.js reads so much of a socket at a time, and no more. */
const bufferBytes = 512 * 1024

/** Shorter pieces are copied into memory of their own, which costs little. */
const shortBytes = 64 * 1024

/**
 * The most buffers that are kept for other pieces. uWebSockets.js reads on while its own buffer comes full each time, in
 * spite of a pause; with these at hand such pieces are copied faster than most clients send.
 */
const keptBuffers = 64

const kept: Array<Buffer> = []

/**
 * A copy of a piece, in a buffer that was used before where the piece is long: fresh memory for each costs as much as
 * hashing it, in page faults and collections.
 */
export const copyOf = (piece: Uint8Array): Uint8Array => {
  if (piece.length < shortBytes || piece.length > bufferBytes) return Buffer.from(piece)
  const buffer = kept.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
  buffer.set(piece)
  return buffer.subarray(0, piece.length)
}

/** The copy is not looked at any more. */
export const giveBack = (copy: Uint8Array): void => {
  const { buffer } = copy
  if (buffer.byteLength === bufferBytes && kept.length < keptBuffers) kept.push(Buffer.from(buffer))
}
