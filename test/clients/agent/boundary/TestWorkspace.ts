import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert } from "@effect/vitest"
import type { ToolMethod } from "#schemas/agents/ToolCall.ts"
import type { Approval, ApprovalAsk } from "#src/clients/agent/boundary/Approval.ts"
import type { ToolOutcome } from "#src/clients/agent/tools/ToolCall.ts"
import { ToolRunner, type ToolRunnerOptions } from "#src/clients/agent/tools/ToolRunner.ts"

/** A workspace on the real file system, with a directory beside it that nothing may reach. */
export interface TestWorkspace {
  readonly base: string
  readonly root: string
  /** beside the workspace; `secret` lies in it */
  readonly outside: string
  readonly runner: ToolRunner
  /** all that the user was asked */
  readonly asked: Array<ApprovalAsk>
  readonly streamed: Array<string>
  /** the user's answer from now on */
  answer: Approval
  run(method: ToolMethod, params: unknown, signal?: AbortSignal): Promise<ToolOutcome>
  exec(
    command: string,
    timeout?: number
  ): Promise<{ readonly exitCode: number | null; readonly output: string }>
}

export const put = (path: string, content = ""): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

const identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
export const git = (directory: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", [...identity, ...args], { cwd: directory, encoding: "utf8" })

const resultOf = (outcome: ToolOutcome): { exitCode: number | null; output: string } => {
  assert.isTrue(outcome.ok, JSON.stringify(outcome))
  return (outcome as { result: { exitCode: number | null; output: string } }).result
}

export const withWorkspace = async <A>(
  use: (workspace: TestWorkspace) => Promise<A>,
  options: Partial<ToolRunnerOptions> & {
    /** the client's own directories lie in the workspace */
    readonly inside?: boolean
    readonly before?: (places: {
      readonly base: string
      readonly root: string
      readonly outside: string
    }) => void
  } = {}
): Promise<A> => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "boundary-")))
  const places = { base, root: join(base, "workspace"), outside: join(base, "outside") }
  mkdirSync(places.root)
  put(join(places.outside, "secret"), "secret")
  const { before, inside = false, ...own } = options
  before?.(places)
  const state = inside
    ? { configDir: join(places.root, "client", "config"), stateDir: join(places.root, "client", "state") }
    : { configDir: join(base, "client", "config"), stateDir: join(base, "client", "state") }
  const runner = await ToolRunner.open({
    root: places.root,
    ...state,
    sandbox: "off",
    network: "ask",
    ...own
  })
  const asked: Array<ApprovalAsk> = []
  const streamed: Array<string> = []
  let count = 0
  const workspace: TestWorkspace = {
    ...places,
    runner,
    asked,
    streamed,
    answer: "no",
    run(method, params, signal = new AbortController().signal) {
      const hooks = {
        signal,
        onOutput: (_: "stdout" | "stderr", data: string) => void streamed.push(data),
        approve: (ask: ApprovalAsk) => {
          asked.push(ask)
          return Promise.resolve(workspace.answer)
        }
      }
      return runner.run({ callId: `call_${++count}`, method, params, timeoutMs: 30_000 }, hooks)
    },
    exec: async (command, timeout = 20) => resultOf(await workspace.run("proc.exec", { command, timeout }))
  }
  try {
    return await use(workspace)
  } finally {
    await runner.close()
    rmSync(base, { recursive: true, force: true })
  }
}

export const okResult = (outcome: ToolOutcome): unknown => {
  assert.isTrue(outcome.ok, JSON.stringify(outcome))
  return outcome.ok ? outcome.result : undefined
}

/** The code of a call that was not done. */
export const codeOf = (outcome: ToolOutcome): string => (outcome.ok ? "ok" : outcome.error.code)
