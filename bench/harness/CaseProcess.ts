import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { alone, type Meet, meetByParent, type MeetRequest } from "./Barrier.ts"
import type { MeasuredRun } from "./Store.ts"
import type { BenchCase, Size } from "./Suite.ts"
import { loadSuite } from "./Suites.ts"

export interface RunRequest {
  readonly suite: string
  readonly case: string
  readonly size: Size
  readonly windowMillis: number
  readonly round: number
  readonly given: unknown
  /** parts of the window, each of which begins on both sides at a time; 1 where there is no other side */
  readonly parts: number
  readonly kept: string | undefined
}

export type CaseAnswer = { readonly measured: MeasuredRun } | MeetRequest

/** Runs one case once, here, in a directory of its own. */
export const measure = async (
  benchCase: BenchCase,
  request: RunRequest,
  meet: Meet
): Promise<MeasuredRun> => {
  const directory = mkdtempSync(join(tmpdir(), "signalbox-bench-"))
  try {
    const before = process.cpuUsage()
    const measurement = await benchCase.run({ ...request, directory, meet })
    const used = process.cpuUsage(before)
    return {
      cpuMillis: measurement.use?.cpuMillis ?? (used.user + used.system) / 1000,
      ...measurement,
      maxRssMiB: Math.round(process.resourceUsage().maxRSS / 1024)
    }
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** The entry point of a fresh process: one request comes in, one measurement goes out. */
const serve = (): void => {
  // The harness decides what an interrupt ends; a terminal sends it to every process.
  let isInterrupted = false
  process.on("SIGINT", () => (isInterrupted = true))
  process.once("disconnect", () => process.exit(1))
  process.once("message", (request: RunRequest) => {
    const answer = async (): Promise<void> => {
      const suite = await loadSuite(request.suite)
      const benchCase = suite.cases.find((one) => one.name === request.case)
      if (benchCase === undefined) throw new Error(`no case "${request.case}" in ${request.suite}`)
      const meet = request.parts > 1 ? meetByParent : alone
      const measured = await measure(benchCase, request, meet)
      process.send?.({ measured } satisfies CaseAnswer, () => process.exit(0))
    }
    answer().catch((error: unknown) => {
      // A fault that an interrupt brings is none.
      if (!isInterrupted) console.error(error)
      process.exit(1)
    })
  })
}

if (process.argv[1] === import.meta.filename) serve()
