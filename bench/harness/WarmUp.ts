import { sized, type CaseContext } from "./Suite.ts"

/** Figures of a short window of a load. */
export interface Window {
  readonly work: number
  readonly cpuMillis: number
}

export interface WarmUp {
  /** two windows in a row agreed; otherwise figures that follow are of code that is still changing */
  readonly isSteady: boolean
  readonly millis: number
}

/** Two windows agree when their CPU per unit differs by no more. */
const agreement = 0.05

/** Code that has hardly run is slow evenly: early windows agree, too. */
const windowsMin = 4

/**
 * Runs short windows of the load until two in a row agree in CPU per unit of work: code is compiled and buffers are grown
 * by then. Gives up after `windowsMax`, 12 (quick) or 16 (full) where it is left out.
 */
export const warmUp = async (
  context: Pick<CaseContext, "size"> & { readonly windowsMax?: number },
  window: (millis: number) => Promise<Window>
): Promise<WarmUp> => {
  const millis = sized(context, { tiny: 50, quick: 400, full: 800 })
  const windowsMax = context.windowsMax ?? sized(context, { tiny: 1, quick: 12, full: 16 })
  const startedAt = performance.now()
  let before = Number.NaN
  for (let count = 0; count < windowsMax; count++) {
    const { cpuMillis, work } = await window(millis)
    const perUnit = cpuMillis / work
    if (count + 1 >= windowsMin && Math.abs(perUnit - before) <= agreement * before)
      return { isSteady: true, millis: performance.now() - startedAt }
    before = perUnit
  }
  return { isSteady: context.size === "tiny", millis: performance.now() - startedAt }
}
