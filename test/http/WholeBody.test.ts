import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { wholeBody } from "#src/http/WholeBody.ts"

const pieceBytes = 512 * 1024

/** A client that is faster than its reader: a piece is there for each pull. `most`: the bytes pulled in one turn of the event loop. */
const fastBody = (pieces: number, length = pieceBytes) => {
  const piece = new Uint8Array(length).fill(7)
  let left = pieces
  let inTurn = 0
  const seen = { most: 0 }
  const turns = (): void => {
    inTurn = 0
    if (left > 0) setImmediate(turns)
  }
  turns()
  const pull = async () => {
    if (left === 0) return "complete" as const
    left--
    inTurn += length
    seen.most = Math.max(seen.most, inTurn)
    return piece
  }
  return { seen, body: { declaredBytes: pieces * length, pull } }
}

const gathered = (body: ReturnType<typeof fastBody>["body"]) =>
  Effect.runPromise(
    wholeBody(body, { maxBodyBytes: 64 * pieceBytes, tooLarge: "too long", reserve: () => true })
  )

it("leaves the event loop to others while a client on the same machine sends faster than bytes are gathered", async () => {
  const { body, seen } = fastBody(16)
  const bytes = await gathered(body)
  assert.strictEqual(bytes?.length, 16 * pieceBytes)
  assert.isTrue(Buffer.alloc(16 * pieceBytes, 7).equals(bytes ?? new Uint8Array()))
  // One that is gathered, and one that waits for its turn.
  assert.isAtMost(seen.most, 2 * pieceBytes)
})

it("gathers short pieces in one turn up to as much", async () => {
  const { body, seen } = fastBody(400, 4_096)
  await gathered(body)
  assert.isAbove(seen.most, pieceBytes / 2)
  assert.isAtMost(seen.most, 2 * pieceBytes)
})
