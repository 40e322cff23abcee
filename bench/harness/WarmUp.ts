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

/** Windows after which it ends, also where they do not agree. */
const usualMost = 24

export interface WarmUpOptions extends Pick<CaseContext, "meet" | "size"> {
  /** units of work before which nothing is looked at: code that has hardly run is slow evenly, so that early windows agree, too */
  readonly workMin?: number
  readonly windowsMax?: number
}

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

const isSteady = (perUnit: ReadonlyArray<number>): boolean => {
  if (perUnit.length < 2 * together) return false
  const before = mean(perUnit.slice(-2 * together, -together))
  return Math.abs(mean(perUnit.slice(-together)) - before) <= agreement * before
}

/**
 * Runs short windows of the load until three in a row agree in CPU per unit of work with the three before, on both sides of a
 * comparison: code is compiled and buffers are grown by then. A side that is ready goes on for as long as the other one is not.
 */
export const warmUp = async (
  options: WarmUpOptions,
  window: (millis: number) => Promise<Window>
): Promise<WarmUp> => {
  const { meet, size, windowsMax = usualMost, workMin = 0 } = options
  const millis = sized(options, { tiny: 50, quick: 200, full: 800 })
  const startedAt = performance.now()
  const perUnit: Array<number> = []
  let worked = 0
  let wasSteady = false
  const most = size === "tiny" ? 1 : windowsMax
  do {
    const { cpuMillis, work } = await window(millis)
    perUnit.push(cpuMillis / work)
    worked += work
    wasSteady ||= worked >= workMin && isSteady(perUnit)
  } while (!(await meet(wasSteady || perUnit.length >= most)))
  return { isSteady: wasSteady || size === "tiny", millis: performance.now() - startedAt }
}
