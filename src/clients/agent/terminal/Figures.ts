/** Figures as people read them, on a few columns. */

/** `950`, `1.2k`, `128k`, `1.5M` */
export const tokens = (count: number): string => {
  if (count < 1_000) return String(count)
  const [value, unit] = count < 999_500 ? [count / 1_000, "k"] : [count / 1_000_000, "M"]
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`
}

/** USD; small amounts keep two figures that say something: `$1.20`, `$0.034`, `$0.00012`. */
export const amount = (usd: number): string => {
  if (usd === 0) return "$0"
  if (usd >= 0.1) return `$${usd.toFixed(2)}`
  const digits = Math.min(8, 1 - Math.floor(Math.log10(usd)))
  return `$${usd.toFixed(Math.max(2, digits))}`
}

/** `450 ms`, `3.2 s`, `58 s`, `4 min 5 s`, `2 h 10 min` */
export const seconds = (millis: number): string => {
  if (millis < 1_000) return `${Math.round(millis)} ms`
  if (millis < 9_950) return `${(millis / 1_000).toFixed(1).replace(/\.0$/, "")} s`
  const whole = Math.round(millis / 1_000)
  if (whole < 60) return `${whole} s`
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`
}
