import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { measure, type MeasuredRun, type RunRequest } from "./CaseProcess.ts"
import type { BenchCase, BenchSuite, Sizes, Stage } from "./Suite.ts"

export interface SuiteRun {
  readonly suite: BenchSuite
  readonly quick: boolean
  /** in the order they ran: rounds interleave the cases, every other round backwards */
  readonly runs: ReadonlyArray<{ readonly case: string; readonly round: number; readonly run: MeasuredRun }>
  readonly unavailable: ReadonlyArray<{ readonly case: string; readonly reason: string }>
}

export interface RunOptions {
  readonly quick: boolean
  readonly rounds?: number
  /** only cases whose name contains it */
  readonly only?: string
  /** a fresh process for every run: what one case heats up or leaves behind does not help or hurt the next */
  readonly freshProcesses: boolean
  readonly sizes?: Sizes
  readonly onRun?: (name: string, round: number, run: MeasuredRun) => void
}

/** Measures in a process of its own, which must answer and end well. */
const measureApart = async (request: RunRequest): Promise<MeasuredRun> => {
  const child = fork(join(import.meta.dirname, "CaseProcess.ts"), {
    // It may be the upstream, or read what comes: its own pauses are not to be measured.
    execArgv: ["--max-semi-space-size=64"],
    stdio: ["ignore", "inherit", "inherit", "ipc"]
  })
  let answer: MeasuredRun | undefined
  child.on("message", (run: MeasuredRun) => (answer = run))
  child.send(request)
  const [code, signal] = await once(child, "exit")
  if (answer === undefined)
    throw new Error(`${request.suite}/${request.case} ended with ${code ?? signal}, without a figure`)
  return answer
}

const check = (suite: BenchSuite): void => {
  const names = new Set(suite.cases.map((one) => one.name))
  if (names.size !== suite.cases.length) throw new Error(`${suite.name}: two cases have one name`)
  const baselines = suite.cases.filter((one) => one.baseline === true).map((one) => one.group ?? "")
  if (new Set(baselines).size !== baselines.length)
    throw new Error(`${suite.name}: a group has two baselines`)
}

const bare: Stage<undefined> = { given: undefined, leave: async () => undefined }

/** Sets the suite's stage up around the work. */
const onStage = async <A>(
  suite: BenchSuite,
  { quick, sizes = {} }: RunOptions,
  work: (given: unknown) => Promise<A>
): Promise<A> => {
  const directory = mkdtempSync(join(tmpdir(), "signalbox-bench-"))
  try {
    const stage = (await suite.stage?.({ quick, directory, sizes })) ?? bare
    try {
      return await work(stage.given)
    } finally {
      await stage.leave()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

export const runSuite = async (suite: BenchSuite, options: RunOptions): Promise<SuiteRun> => {
  check(suite)
  const chosen = suite.cases.filter((one) => one.name.includes(options.only ?? ""))
  const unavailable: Array<{ case: string; reason: string }> = []
  const cases: Array<BenchCase> = []
  for (const one of chosen) {
    const reason = await one.unavailable?.({ quick: options.quick })
    if (reason === undefined) cases.push(one)
    else unavailable.push({ case: one.name, reason })
  }
  const runs: Array<{ case: string; round: number; run: MeasuredRun }> = []
  const rounds = options.rounds ?? (options.quick ? 1 : (suite.rounds ?? 5))
  await onStage(suite, options, async (given) => {
    for (let round = 0; round < rounds; round++) {
      for (const one of round % 2 === 0 ? cases : cases.toReversed()) {
        const request = { suite: suite.name, case: one.name, quick: options.quick, round, given }
        const run = await (options.freshProcesses ? measureApart(request) : measure(one, request))
        runs.push({ case: one.name, round, run })
        options.onRun?.(one.name, round, run)
      }
    }
  })
  return { suite, quick: options.quick, runs, unavailable }
}
