/** A body in pieces, for one request: they are taken out as they leave, so that nothing holds on to them. */
export interface OutgoingPieces {
  readonly pieces: Array<Uint8Array>
  /** Called once when the last of it was handed to the network, and none of it is needed any more. */
  readonly onSent: (() => void) | undefined
}

/** The body of a request to the upstream. */
export type OutgoingBody = string | Uint8Array | OutgoingPieces

export const isInPieces = (body: OutgoingBody): body is OutgoingPieces =>
  typeof body === "object" && "pieces" in body

export const lengthOf = ({ pieces }: OutgoingPieces): number =>
  pieces.reduce((sum, piece) => sum + piece.length, 0)

/** Bytes that the network is given at a time: the rest waits here, not in its buffers. */
const sliceBytes = 256 * 1024

/** The pieces in slices; the next is asked for when the one before has left. */
export async function* slicesOf({ onSent, pieces }: OutgoingPieces): AsyncGenerator<Uint8Array> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
    for (let start = 0; start < piece.length; start += sliceBytes)
      yield piece.subarray(start, start + sliceBytes)
  }
  onSent?.()
}
