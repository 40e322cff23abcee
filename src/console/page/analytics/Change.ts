import { formatDecimal, formatShare } from "../figures/Format.ts"

/** A figure's change against the period before. */
export interface Change {
  readonly text: string
  readonly verdict: "better" | "worse" | "same"
}

const same = (text: string): Change => ({ text, verdict: "same" })

/** In percent of the earlier figure; undefined where that is 0. */
export const relativeChange = (now: number, before: number): Change | undefined => {
  if (before === 0) return undefined
  const share = now / before - 1
  if (Math.abs(share) < 0.005) return same("no change")
  return { text: signed(share, formatShare(Math.abs(share))), verdict: share > 0 ? "better" : "worse" }
}

/** Of a percentage that is better when it is smaller, in points. */
export const pointsFewer = (now: number, before: number): Change => {
  const points = now - before
  if (Math.abs(points) < 0.05) return same("no change")
  return {
    text: signed(points, `${formatDecimal(Math.abs(points))} pt`),
    verdict: points < 0 ? "better" : "worse"
  }
}

const signed = (value: number, text: string): string => `${value > 0 ? "+" : "−"}${text}`
