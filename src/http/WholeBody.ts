import { Effect } from "effect"
import { PayloadTooLarge, RequestTimeout, ServiceUnavailable } from "#schemas/core/Problem.ts"
import type { RawBody } from "#src/front/RawRoute.ts"

interface Limits {
  readonly maxBodyBytes: number
  /** the error of a longer body */
  readonly tooLarge: string
  /** Takes so much more memory; false where there is none. */
  readonly reserve: (bytes: number) => boolean
}

export const tooMuch = ServiceUnavailable.of("The requests under way are too large together; try again")

/**
 * All bytes of a pulled body. Its memory is reserved before it comes; where nothing tells how long it is, by doubling.
 * Undefined where the client left.
 */
export const wholeBody = Effect.fnUntraced(function* (
  body: RawBody,
  { maxBodyBytes, reserve, tooLarge }: Limits
) {
  const declaredBytes = body.declaredBytes ?? 0
  if (declaredBytes > maxBodyBytes) return yield* PayloadTooLarge.of(tooLarge)
  if (!reserve(declaredBytes)) return yield* tooMuch
  let held = new ArrayBuffer(declaredBytes)
  let bytes = 0
  for (;;) {
    const piece = yield* Effect.promise(() => body.pull())
    if (piece === "complete") return new Uint8Array(held, 0, bytes)
    if (piece === "gone") return undefined
    if (piece === "slow") return yield* RequestTimeout.of("The request body arrives too slowly")
    if (piece === "tooLong") return yield* PayloadTooLarge.of(tooLarge)
    const needed = bytes + piece.length
    if (needed > maxBodyBytes) return yield* PayloadTooLarge.of(tooLarge)
    if (needed > held.byteLength) {
      const grown = Math.max(needed, Math.min(2 * held.byteLength, maxBodyBytes))
      if (!reserve(grown - held.byteLength)) return yield* tooMuch
      held = held.transfer(grown)
    }
    new Uint8Array(held).set(piece, bytes)
    bytes = needed
  }
})
