import { setTimeout as pause } from "node:timers/promises"

/**
 * Begins so many, at a steady rate, however long those before them take. Answers the milliseconds of each, from the instant at
 * which it was to begin.
 */
export const openLoop = async (
  perSecond: number,
  count: number,
  once: (n: number) => Promise<unknown>
): Promise<Float64Array> => {
  const millis = new Float64Array(count)
  const under: Array<Promise<void>> = []
  const startedAt = performance.now()
  for (let n = 0; n < count; n++) {
    const due = startedAt + (n * 1_000) / perSecond
    const early = due - performance.now()
    if (early > 0.5) await pause(early)
    under.push(once(n).then(() => void (millis[n] = performance.now() - due)))
  }
  await Promise.all(under)
  return millis
}
