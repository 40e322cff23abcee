import { sized, type CaseContext } from "./Suite.ts"

/** Figures of a short window of a load. */
export interface Window {
  readonly work: number
  readonly cpuMillis: number
}

export interface WarmUp {
  /** the last windows agreed; otherwise figures that follow are of code that is still changing */
  readonly isSteady: boolean
  readonly millis: number
}

/** So many windows are taken together: a collection of all garbage falls into one of them, and not into each. */
const together = 3

/** They agree with as many before them when their CPU per unit differs by no more. */
const agreement = 0.05

export interface WarmUpOptions extends Pick<CaseContext, "size"> {
  /** code that has hardly run is slow evenly, so that early windows agree, too; 6 where it is left out */
  readonly windowsMin?: number
  /** 24 where it is left out; twice `windowsMin` where that is more */
  readonly windowsMax?: number
}

/**
 * Runs short windows of the load until three in a row agree in CPU per unit of work with the three before: code is compiled
 * and buffers are grown by then.
 */
export const warmUp = async (
  options: WarmUpOptions,
  window: (millis: number) => Promise<Window>
): Promise<WarmUp> => {
  const millis = sized(options, { tiny: 50, quick: 200, full: 800 })
  const windowsMin = options.windowsMin ?? 2 * together
  const windowsMax = options.windowsMax ?? Math.max(2 * windowsMin, 24)
  const startedAt = performance.now()
  const perUnit: Array<number> = []
  const meanOf = (windows: ReadonlyArray<number>): number =>
    windows.reduce((sum, one) => sum + one, 0) / windows.length
  while (perUnit.length < (options.size === "tiny" ? 1 : windowsMax)) {
    const { cpuMillis, work } = await window(millis)
    perUnit.push(cpuMillis / work)
    if (perUnit.length < Math.min(windowsMin, windowsMax)) continue
    const before = meanOf(perUnit.slice(-2 * together, -together))
    if (Math.abs(meanOf(perUnit.slice(-together)) - before) <= agreement * before)
      return { isSteady: true, millis: performance.now() - startedAt }
  }
  return { isSteady: options.size === "tiny", millis: performance.now() - startedAt }
}
