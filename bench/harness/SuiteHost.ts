import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { alone, answersMeets, isMeetRequest, type Meet, type MeetRequest } from "./Barrier.ts"
import { type CaseAnswer, measure, type RunRequest } from "./CaseProcess.ts"
import type { MeasuredRun } from "./Store.ts"
import type { BenchSuite, Settings, Size, Stage } from "./Suite.ts"

/** A suite whose stage is set up: its cases can be run, one at a time. */
export interface SuiteHost {
  /** with `meet`, the case measures in parts, and meets the other side before each */
  readonly run: (benchCase: string, round: number, meet?: Meet) => Promise<MeasuredRun>
  /** ends everything that the stage started */
  readonly leave: () => Promise<void>
}

export interface HostOptions {
  readonly size: Size
  readonly windowMillis: number
  readonly settings: Settings
  /** of this side of a comparison, from round to round */
  readonly kept?: string
  /** names of the cases that will run */
  readonly cases: ReadonlyArray<string>
  /** a directory for CPU profiles, one a case */
  readonly profiles?: string
}

/** Resolves with how a child has ended: its exit code, a signal, or why it cannot be spoken to. */
const endOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(String(code ?? signal)))
    // A message to a child that has just ended is an error of the child's, any number of times.
    child.on("error", ({ message }) => resolve(message))
  })

/** Runs a case in a fresh process, so that nothing that an earlier one heated up or left behind helps or hurts it. */
const measureApart = async (
  request: RunRequest,
  profiles: string | undefined,
  meet: Meet
): Promise<MeasuredRun> => {
  const file = `${request.case.replaceAll(/[^\w.-]+/g, "-")}.cpuprofile`
  const child = fork(join(import.meta.dirname, "CaseProcess.ts"), {
    // It may be the upstream, or read what comes: its own pauses are not to be measured.
    execArgv: ["--max-semi-space-size=64"],
    env: { ...process.env, ...(profiles === undefined ? {} : { BENCH_PROFILE: join(profiles, file) }) },
    stdio: ["ignore", "inherit", "inherit", "ipc"]
  })
  const ended = endOf(child)
  let measured: MeasuredRun | undefined
  const onMeet = answersMeets(meet, (answer) => void child.send(answer))
  child.on("message", (answer: CaseAnswer) => {
    if (isMeetRequest(answer)) void onMeet(answer)
    else measured = answer.measured
  })
  child.send(request)
  const end = await ended
  if (measured === undefined)
    throw new Error(`${request.suite}/${request.case} ended with ${end}, without a figure`)
  return measured
}

/** Parts of the window of a case that measures side by side: a collection of all garbage falls into few of them. */
const partsOfWindow = 12

const bare: Stage<undefined> = { given: undefined, leave: async () => undefined }

/** Sets a suite's stage up in this process; its cases run in fresh processes, or here at the tiny size. */
export const openHere = async (suite: BenchSuite, options: HostOptions): Promise<SuiteHost> => {
  const { cases, kept, profiles, settings, size, windowMillis } = options
  const directory = mkdtempSync(join(tmpdir(), "signalbox-bench-"))
  const remove = (): void => rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  const open = async (): Promise<Stage<unknown>> => {
    try {
      return (await suite.stage?.({ size, directory, kept, settings, cases })) ?? bare
    } catch (error) {
      remove()
      throw error
    }
  }
  const stage = await open()
  return {
    run: async (name, round, meet) => {
      const parts = meet === undefined ? 1 : partsOfWindow
      const { given } = stage
      const request = { suite: suite.name, case: name, size, windowMillis, round, given, parts, kept }
      const benchCase = suite.cases.find((one) => one.name === name)
      if (benchCase === undefined) throw new Error(`no case "${name}" in ${suite.name}`)
      return size === "tiny"
        ? measure(benchCase, request, meet ?? alone)
        : measureApart(request, profiles, meet ?? alone)
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

/** Messages to the process of a suite, and its answers; both sides may be of different commits. */
export type HostCommand =
  | { readonly do: "open"; readonly suite: string; readonly options: HostOptions }
  | { readonly do: "run"; readonly case: string; readonly round: number; readonly sideBySide: boolean }
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
  const ended = endOf(child)
  const ask = (command: HostCommand, meet: Meet = alone): Promise<MeasuredRun | undefined> =>
    new Promise((resolve, reject) => {
      const fail = (message: string): void => reject(new Error(`${suite}: ${message}`))
      const onMeet = answersMeets(meet, (answer) => void child.send(answer))
      const onMessage = (answer: HostAnswer | MeetRequest): void => {
        if (isMeetRequest(answer)) return void onMeet(answer)
        child.off("message", onMessage)
        if (answer.ok) resolve(answer.run)
        else fail(answer.message)
      }
      child.on("message", onMessage)
      void ended.then((end) => fail(`its process ended with ${end}`))
      child.send(command)
    })
  await ask({ do: "open", suite, options }).catch(async (error: unknown) => {
    if (child.connected) child.disconnect()
    await ended
    throw error
  })
  return {
    run: async (name, round, meet) => {
      const run = await ask({ do: "run", case: name, round, sideBySide: meet !== undefined }, meet)
      if (run === undefined) throw new Error(`${suite}/${name} gave no figure`)
      return run
    },
    leave: async () => {
      // One that was killed has nothing to leave any more.
      if (child.connected) await ask({ do: "leave" })
      await ended
    }
  }
}
