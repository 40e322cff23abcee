const firstMillis = 250
const capMillis = 10_000
/** What a server asks for is obeyed up to this. */
const askedMillisMax = 3_600_000

/**
 * How long to wait before attempt `failures` + 1: anything up to twice as long as the time before, so that clients which
 * lost one server do not come back in step (full jitter), and never less than the server asked for.
 */
export const backoffMillis = (failures: number, askedMillis: number, random: () => number): number => {
  const ceiling = Math.min(capMillis, firstMillis * 2 ** Math.min(failures, 16))
  return Math.max(Math.min(askedMillis, askedMillisMax), Math.round(random() * ceiling))
}
