import { Effect } from "effect"
import { PayloadTooLarge, RequestTimeout, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { RawBody } from "#src/front/RawRoute.ts"

/** Takes so much more memory; false where there is none. */
export type Reserve = (bytes: number) => boolean

interface Limits {
  readonly maxBodyBytes: number
  /** the error of a longer body */
  readonly tooLarge: string
  readonly reserve: Reserve
}

export const tooMuch = ServiceUnavailable.of("The requests under way are too large together; try again")

/** Bytes that come in pieces, in one buffer. Its memory is reserved before it is taken, by doubling where it has to grow. */
export class GatheredBytes {
  readonly #reserve: Reserve
  readonly #maxBytes: number
  #held = new ArrayBuffer(0)
  #length = 0

  constructor(reserve: Reserve, maxBytes: number) {
    this.#reserve = reserve
    this.#maxBytes = maxBytes
  }

  get length(): number {
    return this.#length
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#held, 0, this.#length)
  }

  /** Room for so many; false where there is no memory. */
  expect(bytes: number): boolean {
    const more = bytes - this.#held.byteLength
    if (more <= 0) return true
    if (!this.#reserve(more)) return false
    // A new buffer is zero without being written; a longer one is not.
    this.#held = this.#length === 0 ? new ArrayBuffer(bytes) : this.#held.transfer(bytes)
    return true
  }

  add(piece: Uint8Array): boolean {
    const length = this.#length + piece.length
    const doubled = Math.min(2 * this.#held.byteLength, this.#maxBytes)
    if (length > this.#held.byteLength && !this.expect(Math.max(length, doubled))) return false
    new Uint8Array(this.#held).set(piece, this.#length)
    this.#length = length
    return true
  }
}

/**
 * So much is gathered in one turn of the event loop. The system brings new memory page by page, which takes longer than
 * copying, and a client on the same machine has its bytes read in one turn for as long as it is the faster one (0028).
 */
const turnBytes = 512 * 1024

const nextTurn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

/** All bytes of a pulled body, whose memory is reserved before it comes. Undefined where the client left. */
export const wholeBody = Effect.fnUntraced(function* (
  body: RawBody,
  { maxBodyBytes, reserve, tooLarge }: Limits
) {
  const declaredBytes = body.declaredBytes ?? 0
  if (declaredBytes > maxBodyBytes) return yield* PayloadTooLarge.of(tooLarge)
  const gathered = new GatheredBytes(reserve, maxBodyBytes)
  if (!gathered.expect(declaredBytes)) return yield* tooMuch
  for (let inTurn = 0; ;) {
    const piece = yield* Effect.promise(() => body.pull())
    if (piece === "complete") return gathered.bytes
    if (piece === "gone") return undefined
    if (piece === "slow") return yield* RequestTimeout.of("The request body arrives too slowly")
    if (piece === "tooLong" || gathered.length + piece.length > maxBodyBytes)
      return yield* PayloadTooLarge.of(tooLarge)
    if (inTurn + piece.length > turnBytes) {
      yield* nextTurn
      inTurn = 0
    }
    inTurn += piece.length
    if (!gathered.add(piece)) return yield* tooMuch
  }
})
