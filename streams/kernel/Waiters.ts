import { Effect } from "effect"
import { payloadBytes, type Frame } from "./Frame.ts"

/** Fibers that wait for the log to grow, each by its own measure. */
export interface Waiters {
  readonly await: (options: {
    readonly from: number
    readonly records: number
    readonly bytes: number
  }) => Effect.Effect<void>
  readonly onDurable: (frame: Frame) => void
  /** lets all go, now and from now on */
  readonly close: () => void
}

interface Waiter {
  readonly untilOffset: number
  bytesLeft: number
  readonly resume: () => void
}

export const make = (options: {
  readonly durableOffset: () => number
  /** payload bytes at and above an offset */
  readonly bytesFrom: (offset: number) => number
}): Waiters => {
  const waiting = new Set<Waiter>()
  let isClosed = false
  return {
    await: ({ from, records, bytes }) =>
      Effect.callback((resume) => {
        const untilOffset = from + records
        const bytesLeft = bytes === Infinity ? Infinity : bytes - options.bytesFrom(from)
        if (isClosed || options.durableOffset() >= untilOffset || bytesLeft <= 0) return resume(Effect.void)
        const waiter: Waiter = { untilOffset, bytesLeft, resume: () => resume(Effect.void) }
        waiting.add(waiter)
        return Effect.sync(() => waiting.delete(waiter))
      }),
    onDurable: (frame) => {
      if (waiting.size === 0) return
      const end = frame.baseOffset + frame.count
      const bytes = payloadBytes(frame)
      for (const waiter of waiting) {
        waiter.bytesLeft -= bytes
        if (waiter.untilOffset > end && waiter.bytesLeft > 0) continue
        waiting.delete(waiter)
        waiter.resume()
      }
    },
    close: () => {
      isClosed = true
      for (const waiter of waiting) waiter.resume()
      waiting.clear()
    }
  }
}
