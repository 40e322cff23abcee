import { appendFileSync } from "node:fs"
import type { Reporter, TestModule } from "vitest/node"

type Errors = ReadonlyArray<{ readonly message: string; readonly stack?: string | undefined }>

const lines = ({ message, stack = message }: Errors[number]): string =>
  stack
    .split("\n")
    .filter((line) => !line.includes("/node_modules/"))
    .slice(0, 12)
    .map((line) => `    ${line}`)
    .join("\n")

/**
 * Appends names and first lines of all failures to the file `FAILURES_FILE`: of tests, of the hooks of files and
 * groups, and errors outside of tests. JSON by Vitest has those of tests only.
 */
export default class Failures implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, outside: Errors): void {
    for (const module of modules) {
      const file = module.relativeModuleId
      this.#report(file, module.errors())
      for (const suite of module.children.allSuites())
        this.#report(`${file}: hooks of ${suite.fullName}`, suite.errors())
      for (const test of module.children.allTests("failed")) {
        const millis = Math.round(test.diagnostic()?.duration ?? 0)
        this.#report(`${file}: ${test.fullName} (${millis} ms)`, test.result().errors ?? [])
      }
    }
    this.#report("outside of tests", outside)
  }

  #report(name: string, errors: Errors): void {
    const file = process.env["FAILURES_FILE"]
    if (file === undefined || errors.length === 0) return
    appendFileSync(file, `FAILED ${name}\n${errors.map(lines).join("\n")}\n`)
  }
}
