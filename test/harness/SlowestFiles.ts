import type { Reporter, TestModule } from "vitest/node"

const shown = 20

/** Prints the files that took longest, at the end of a run. */
export default class SlowestFiles implements Reporter {
  readonly #files: Array<{ readonly file: string; readonly millis: number }> = []

  onTestModuleEnd(module: TestModule): void {
    const { collectDuration, duration, environmentSetupDuration, prepareDuration, setupDuration } =
      module.diagnostic()
    const millis = prepareDuration + environmentSetupDuration + setupDuration + collectDuration + duration
    this.#files.push({ file: module.relativeModuleId, millis })
  }

  onTestRunEnd(): void {
    if (this.#files.length < 2) return
    const slowest = this.#files.toSorted((a, b) => b.millis - a.millis).slice(0, shown)
    const lines = slowest.map(({ file, millis }) => `${(millis / 1_000).toFixed(1).padStart(8)} s  ${file}`)
    process.stdout.write(`\nThe slowest of ${this.#files.length} files:\n${lines.join("\n")}\n`)
  }
}
