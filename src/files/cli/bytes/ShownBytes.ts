const unit = 1_000
const units = ["bytes", "kB", "MB", "GB", "TB"]

/** As people read sizes: `1.5 MB`. */
export const shownBytes = (bytes: number): string => {
  const power = bytes < unit ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / unit ** power
  return `${power === 0 ? value : value.toPrecision(3)} ${units[power]}`
}

/** For a progress bar, to a tenth. */
export const megabytes = (bytes: number): number => Math.round(bytes / ((unit * unit) / 10)) / 10
