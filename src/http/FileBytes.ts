import { open } from "node:fs/promises"
import { Effect, Stream } from "effect"

export interface ByteRange {
  /** first byte, from 0 */
  readonly from: number
  /** one past the last byte */
  readonly to: number
}

/** The bytes of a part of a file. It is opened when they are read, and closed with their reader. */
export const fileBytes = (path: string, { from, to }: ByteRange): Stream.Stream<Uint8Array> =>
  from >= to
    ? Stream.empty
    : Stream.unwrap(
        Effect.map(
          Effect.acquireRelease(
            Effect.promise(() => open(path, "r")),
            (handle) => Effect.promise(() => handle.close())
          ),
          (handle) =>
            Stream.fromAsyncIterable(
              handle.createReadStream({ start: from, end: to - 1, autoClose: false, highWaterMark: 65_536 }),
              (cause) => cause
            ).pipe(Stream.orDie)
        )
      )
