import type { Granularity } from "./Format.ts"

export interface Line {
  readonly name: string
  /** of each bucket */
  readonly values: ReadonlyArray<number>
  /** a value in words, as the readout has it */
  readonly inWords: (value: number) => string
}

/** A time series to be drawn: one line, filled, or two. */
export interface Series {
  readonly granularity: Granularity
  /** their starts, in order */
  readonly buckets: ReadonlyArray<string>
  /** the last bucket is not over yet */
  readonly isOpen: boolean
  readonly first: Line
  readonly second?: Line
  /** for the axis */
  readonly format: (value: number) => string
  /** values are whole numbers */
  readonly isWhole: boolean
}

export const lineNames = ({ first, second }: Series): ReadonlyArray<string> =>
  second === undefined ? [first.name] : [first.name, second.name]

/** One bucket, in words. */
export const wordsAt = ({ first, second }: Series, index: number): string =>
  [first, ...(second === undefined ? [] : [second])]
    .map(({ inWords, values }) => inWords(values[index] ?? 0))
    .join(", ")
