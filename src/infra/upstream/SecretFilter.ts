/** Shorter ones are no secrets, but words that turn up by themselves. */
const secretBytesMin = 8

const star = 0x2a

/**
 * Blots the platform's key out of an upstream's answer, byte for byte, across any cut into pieces: some echo the
 * request's headers in their errors. A possible beginning of the key waits for the next piece.
 */
export class SecretFilter {
  readonly #secret: Buffer
  #waiting: Buffer = Buffer.alloc(0)

  /** @param secret undefined, or too short to be one: everything passes as it is */
  constructor(secret: string | undefined) {
    const bytes = Buffer.from(secret ?? "")
    this.#secret = bytes.length < secretBytesMin ? Buffer.alloc(0) : bytes
  }

  /** The part of the pieces so far that may go on; may be empty. Blots in the piece itself. */
  push(piece: Buffer): Buffer {
    if (this.#secret.length === 0) return piece
    const bytes = this.#waiting.length === 0 ? piece : Buffer.concat([this.#waiting, piece])
    for (let at = bytes.indexOf(this.#secret); at >= 0; at = bytes.indexOf(this.#secret, at)) {
      bytes.fill(star, at, at + this.#secret.length)
    }
    const end = bytes.length - this.#begunAtEndOf(bytes)
    // A copy: the rest of the piece is its receiver's.
    this.#waiting = Buffer.from(bytes.subarray(end))
    return bytes.subarray(0, end)
  }

  /** The waiting rest, at the end. */
  rest(): Buffer {
    const rest = this.#waiting
    this.#waiting = Buffer.alloc(0)
    return rest
  }

  /** The number of last bytes that are a beginning of the secret. */
  #begunAtEndOf(bytes: Buffer): number {
    const longest = Math.min(this.#secret.length - 1, bytes.length)
    for (let length = longest; length > 0; length--) {
      if (bytes.compare(this.#secret, 0, length, bytes.length - length) === 0) return length
    }
    return 0
  }
}
