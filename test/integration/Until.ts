import { setTimeout as sleep } from "node:timers/promises"

/** Asks until nothing is missing any more; what was missing last is the error's text. */
export const until = async (
  what: string,
  missing: () => Promise<string | undefined>,
  patienceMillis = 30_000
): Promise<void> => {
  const deadline = performance.now() + patienceMillis
  for (;;) {
    const lacks = await missing()
    if (lacks === undefined) return
    if (performance.now() > deadline) throw new Error(`${what}: ${lacks}`)
    await sleep(50)
  }
}
