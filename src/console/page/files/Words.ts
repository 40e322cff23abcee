import { formatCount, formatDecimal } from "../figures/Format.ts"

const units = ["kB", "MB", "GB", "TB", "PB"]

/** `0 bytes`, `12.3 kB`, `1.5 GB`: thousands, as disks are sold and other pages count. */
export const formatBytes = (bytes: number): string => {
  if (bytes < 1000) return bytes === 1 ? "1 byte" : `${formatCount(bytes)} bytes`
  let value = bytes
  let unit = -1
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  const text = value >= 100 ? formatCount(value) : formatDecimal(Math.round(value * 10) / 10)
  return `${text} ${units[unit] ?? ""}`
}

const locale = navigator.language.startsWith("en") ? navigator.language : "en-GB"
const day = { day: "numeric", month: "short" } as const
const recent = new Intl.DateTimeFormat(locale, {
  ...day,
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23"
})
const older = new Intl.DateTimeFormat(locale, { ...day, year: "numeric" })

/** On the reader's own clock: `21 Nov, 14:00`, and `21 Nov 2025` where it was another year. */
export const formatWhen = (iso: string): string => {
  const at = new Date(iso)
  return (at.getFullYear() === new Date().getFullYear() ? recent : older).format(at)
}
