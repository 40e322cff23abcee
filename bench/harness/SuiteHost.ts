import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { measure, type RunRequest } from "./CaseProcess.ts"
import type { MeasuredRun } from "./Store.ts"
import type { BenchSuite, Settings, Size, Stage } from "./Suite.ts"

/** A suite whose stage is set up: its cases can be run, one at a time. */
export interface SuiteHost {
  readonly run: (benchCase: string, round: number) => Promise<MeasuredRun>
  /** ends everything that the stage started */
  readonly leave: () => Promise<void>
}

export interface HostOptions {
  readonly size: Size
  readonly windowMillis: number
  readonly settings: Settings
  /** names of the cases that will run */
  readonly cases: ReadonlyArray<string>
  /** a directory for CPU profiles, one a case */
  readonly profiles?: string
}

/** Runs a case in a fresh process, so that nothing that an earlier one heated up or left behind helps or hurts it. */
const measureApart = async (request: RunRequest, profiles: string | undefined): Promise<MeasuredRun> => {
  const file = `${request.case.replaceAll(/[^\w.-]+/g, "-")}.cpuprofile`
  const child = fork(join(import.meta.dirname, "CaseProcess.ts"), {
    // It may be the upstream, or read what comes: its own pauses are not to be measured.
    execArgv: ["--max-semi-space-size=64"],
    env: { ...process.env, ...(profiles === undefined ? {} : { BENCH_PROFILE: join(profiles, file) }) },
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

const bare: Stage<undefined> = { given: undefined, leave: async () => undefined }

/** Sets a suite's stage up in this process; its cases run in fresh processes, or here at the tiny size. */
export const openHere = async (suite: BenchSuite, options: HostOptions): Promise<SuiteHost> => {
  const { cases, profiles, settings, size, windowMillis } = options
  const directory = mkdtempSync(join(tmpdir(), "signalbox-bench-"))
  const remove = (): void => rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  const open = async (): Promise<Stage<unknown>> => {
    try {
      return (await suite.stage?.({ size, directory, settings, cases })) ?? bare
    } catch (error) {
      remove()
      throw error
    }
  }
  const stage = await open()
  return {
    run: async (name, round) => {
      const request = { suite: suite.name, case: name, size, windowMillis, round, given: stage.given }
      const benchCase = suite.cases.find((one) => one.name === name)
      if (benchCase === undefined) throw new Error(`no case "${name}" in ${suite.name}`)
      return size === "tiny" ? measure(benchCase, request) : measureApart(request, profiles)
    },
    leave: async () => {
      try {
        await stage.leave()
      } finally {
        remove()
      }
    }
  }
}

/** What the process of a suite is told, and what it answers; both sides may be of different commits. */
export type HostCommand =
  | { readonly do: "open"; readonly suite: string; readonly options: HostOptions }
  | { readonly do: "run"; readonly case: string; readonly round: number }
  | { readonly do: "leave" }
export type HostAnswer =
  | { readonly ok: true; readonly run?: MeasuredRun }
  | { readonly ok: false; readonly message: string }

/** Sets a suite's stage up in a process of its own, with the code of a tree, which may be another commit's. */
export const openApart = async (tree: string, suite: string, options: HostOptions): Promise<SuiteHost> => {
  const child = fork(join(tree, "bench/harness/SuiteProcess.ts"), {
    cwd: tree,
    stdio: ["ignore", "inherit", "inherit", "ipc"]
  })
  const exited = once(child, "exit")
  const ask = async (command: HostCommand): Promise<MeasuredRun | undefined> => {
    child.send(command)
    const [answer] = (await Promise.race([
      once(child, "message"),
      exited.then(([code, signal]) => [{ ok: false, message: `its process ended with ${code ?? signal}` }])
    ])) as [HostAnswer]
    if (!answer.ok) throw new Error(`${suite}: ${answer.message}`)
    return answer.run
  }
  await ask({ do: "open", suite, options })
  return {
    run: async (name, round) => {
      const run = await ask({ do: "run", case: name, round })
      if (run === undefined) throw new Error(`${suite}/${name} gave no figure`)
      return run
    },
    leave: async () => {
      await ask({ do: "leave" })
      await exited
    }
  }
}
