import type { HoldSettings } from "#streams/notify/digests/Due.ts"

/**
 * When a held message is due, found by looking at the clock on the wall minute by minute: no arithmetic with offsets. All
 * zones of this century change their clocks at full minutes.
 */

const minuteMillis = 60_000
const dayMillis = 86_400_000
/** No change of this century shows a minute again later than this. */
const repeatMinutes = 120

/** The clock of a zone, which shows `2026-11-20 00:30` in a minute; minutes count from 1970. */
class WallClock {
  readonly #shown = new Map<number, string>()
  readonly #format: Intl.DateTimeFormat

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" })
  }

  at(minute: number): string {
    const known = this.#shown.get(minute)
    if (known !== undefined) return known
    const shown = this.#format.format(minute * minuteMillis)
    this.#shown.set(minute, shown)
    return shown
  }
}

const clocks = new Map<string, WallClock>()

const clockOf = (timeZone: string): WallClock => {
  const clock = clocks.get(timeZone) ?? new WallClock(timeZone)
  clocks.set(timeZone, clock)
  return clock
}

const isQuiet = (time: string, from: string | null, to: string | null): boolean => {
  if (from === null || to === null) return false
  return from <= to ? from <= time && time < to : time >= from || time < to
}

/** The dates from one to another, both included. */
const datesBetween = (first: string, last: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let day = Date.parse(first); day <= Date.parse(last); day += dayMillis)
    found.push(new Date(day).toISOString().slice(0, 10))
  return found
}

/** Whether a day's digest is due in a minute: its time is shown for the first time, or was just skipped. */
const isDigest = (clock: WallClock, minute: number, digestAt: string): boolean => {
  const [before, shown] = [clock.at(minute - 1), clock.at(minute)]
  if (shown.endsWith(digestAt)) {
    for (let earlier = 1; earlier <= repeatMinutes; earlier++)
      if (clock.at(minute - earlier) === shown) return false
    return true
  }
  return datesBetween(before.slice(0, 10), shown.slice(0, 10)).some((date) => {
    const digest = `${date} ${digestAt}`
    return before < digest && digest < shown
  })
}

export const naiveDueOf = (settings: HoldSettings, nowMillis: number): number | undefined => {
  const { delivery, digestAt, quietFrom, quietTo, timezone } = settings
  const clock = clockOf(timezone)
  const now = Math.floor(nowMillis / minuteMillis)
  const isQuietIn = (minute: number): boolean => isQuiet(clock.at(minute).slice(11), quietFrom, quietTo)

  let minute = now
  if (delivery === "hourly")
    do minute++
    while (!clock.at(minute).endsWith(":00"))
  if (delivery === "daily")
    do minute++
    while (!isDigest(clock, minute, digestAt ?? "09:00"))
  while (isQuietIn(minute)) minute++
  return minute === now ? undefined : minute * minuteMillis
}
