import { payloadBytesFrom, type Frame } from "./Frame.ts"
import { collect, type RecordBatch } from "./LogRecord.ts"

/** The newest frames in memory, oldest forgotten first: a consumer that keeps up never reads from disk. */
export interface Tail {
  readonly push: (frame: Frame) => void
  /** undefined when the tail does not reach back to `from` */
  readonly read: (from: number, into: RecordBatch) => RecordBatch | undefined
  /** payload bytes at and above `from`; Infinity when the tail does not reach back */
  readonly bytesFrom: (from: number) => number
  readonly bytes: () => number
}

export const make = (maxBytes: number, startOffset: number): Tail => {
  const state: State = { frames: [], first: 0, bytes: 0, startsAt: startOffset, endsAt: startOffset }
  const { frames } = state
  return {
    push: (frame) => {
      frames.push(frame)
      state.bytes += frame.bytes.length
      state.endsAt = frame.baseOffset + frame.count
      while (state.bytes > maxBytes) dropOldest(state)
    },
    read: (from, into) => {
      if (from < state.startsAt) return undefined
      if (from >= state.endsAt) return into
      for (let i = find(state, from); i < frames.length && !into.full; i++) {
        const frame = frames[i]
        if (frame !== undefined) collect(frame, from, into)
      }
      return into
    },
    bytesFrom: (from) => {
      if (from < state.startsAt) return Infinity
      if (from >= state.endsAt) return 0
      let sum = 0
      for (let i = find(state, from); i < frames.length; i++) {
        const frame = frames[i]
        if (frame !== undefined) sum += payloadBytesFrom(frame, from)
      }
      return sum
    },
    bytes: () => state.bytes
  }
}

interface State {
  readonly frames: Array<Frame | undefined>
  /** index of the oldest frame kept: shift() on a long array would move all of it at every drop */
  first: number
  bytes: number
  startsAt: number
  endsAt: number
}

const dropOldest = (state: State): void => {
  const { frames, first } = state
  const frame = frames[first]
  if (frame === undefined) return
  frames[first] = undefined
  state.first = first + 1
  state.bytes -= frame.bytes.length
  state.startsAt = frame.baseOffset + frame.count
  if (state.first >= 64 && state.first * 2 >= frames.length) {
    frames.splice(0, state.first)
    state.first = 0
  }
}

/** Index of the frame that holds `offset`. */
const find = (state: State, offset: number): number => {
  let low = state.first
  let high = state.frames.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((state.frames[middle]?.baseOffset ?? Infinity) <= offset) low = middle
    else high = middle - 1
  }
  return low
}
