const minuteMillis = 60_000

/** Pauses behind the first failed attempts; the later ones last an hour. */
const firstMinutes = [1, 5, 15, 30]
const laterMinutes = 60

/** The pause behind so many failed attempts, a tenth more or less, so that those that failed together come again apart. */
export const retryMillis = (failed: number, random = Math.random()): number =>
  (firstMinutes[failed - 1] ?? laterMinutes) * minuteMillis * (0.9 + 0.2 * random)
