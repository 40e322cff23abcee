const units = ["bytes", "KB", "MB", "GB", "TB"] as const

/** A number of bytes for people, in multiples of 1024, as limits are. */
export const sizeText = (bytes: number): string => {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1
  return `${value.toFixed(digits)} ${units[unit]}`
}
