/** A longer pause is taken for this one: the message would be too old. */
export const pauseMillisMax = 24 * 3_600_000

const days = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
const months = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
const time = "\\d{2}:\\d{2}:\\d{2}"

/** The three forms of a date in RFC 9110, section 5.6.7. `Date.parse` alone takes nearly everything for a date. */
const dates = [
  new RegExp(`^${days}, \\d{2} ${months} \\d{4} ${time} GMT$`, "u"),
  new RegExp(`^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \\d{2}-${months}-\\d{2} ${time} GMT$`, "u")
]
const asctime = new RegExp(`^${days} ${months} [ \\d]\\d ${time} \\d{4}$`, "u")

/**
 * The pause that a header `Retry-After` asks for: 1 ms to 24 h, or undefined where it asks for none, for one that is over, or
 * for nonsense. Seconds may have decimals.
 */
export const retryAfterMillis = (value: string | undefined, nowMillis: number): number | undefined => {
  const text = value?.trim() ?? ""
  const pause = /^\d+(?:\.\d+)?$/u.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMillis
  return pause > 0 ? Math.min(Math.ceil(pause), pauseMillisMax) : undefined
}

/** NaN where it is no date. */
const dateOf = (text: string): number => {
  if (dates.some((form) => form.test(text))) return Date.parse(text)
  return asctime.test(text) ? Date.parse(`${text} GMT`) : Number.NaN
}
