import process from "node:process"

/** Progress of a long piece of work, on standard error, so that `--json` output stays clean. */
export interface ProgressBar {
  readonly update: (done: number) => void
  readonly finish: () => void
}

const barWidth = 30
const redrawMillis = 100
/** without a terminal, a line now and then */
const lineMillis = 5_000

const seconds = (value: number): string =>
  Number.isFinite(value) ? `${Math.max(0, Math.round(value))} s` : "?"

export const makeProgressBar = (label: string, total: number, unit: string): ProgressBar => {
  const started = performance.now()
  const isTerminal = process.stderr.isTTY === true
  let drawn = started

  const describe = (done: number): string => {
    const share = total === 0 ? 1 : done / total
    const elapsed = (performance.now() - started) / 1000
    const rate = done / Math.max(elapsed, 0.001)
    const filled = Math.round(share * barWidth)
    const bar = isTerminal ? `[${"█".repeat(filled)}${" ".repeat(barWidth - filled)}] ` : ""
    const left = seconds((total - done) / rate)
    return `${label} ${bar}${Math.floor(share * 100)} %  ${done}/${total} ${unit}  ${Math.round(rate)}/s  ${left} left`
  }

  return {
    update: (done) => {
      const now = performance.now()
      if (now - drawn < (isTerminal ? redrawMillis : lineMillis)) return
      drawn = now
      process.stderr.write(isTerminal ? `\r\u001b[K${describe(done)}` : `${describe(done)}\n`)
    },
    finish: () => {
      if (isTerminal) process.stderr.write("\r\u001b[K")
    }
  }
}
