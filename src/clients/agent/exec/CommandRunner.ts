import { existsSync } from "node:fs"
import { copyFile, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { agentLimits } from "#schemas/agents/AgentLimits.ts"
import type { ExecParams, ExecResult } from "#schemas/agents/ToolCall.ts"
import { type ApprovalKind, kindsOfNeed } from "../boundary/Approval.ts"
import type { Approvals, Question } from "../boundary/Approvals.ts"
import { configuredIn } from "../boundary/GitConfiguration.ts"
import type { GitLayout } from "../boundary/GitLayout.ts"
import type { Jail } from "../boundary/Jail.ts"
import { isWithin } from "../boundary/OpenWorkspace.ts"
import type { Survey } from "../boundary/Survey.ts"
import type { ToolCall, ToolHooks } from "../tools/ToolCall.ts"
import { denied, ToolFailure } from "../tools/ToolFailure.ts"
import {
  WorkspaceCheck,
  lacksSelfRunning,
  missedSelfRunning,
  selfRunningIn,
  unheld,
  type Surroundings
} from "./WorkspaceCheck.ts"
import { sandboxArguments, sandboxHome, type Bubblewrap } from "./Bubblewrap.ts"
import { commandEnvironment, findProgram } from "./CommandEnvironment.ts"
import { CommandOutput } from "./CommandOutput.ts"
import { failureIn, missedNeeds } from "./MissedNeeds.ts"
import { mountPlan, type GitAccess, type MountPlan } from "./MountPlan.ts"
import type { MountPoints } from "./MountPoints.ts"
import { runCommand, type Ended, type Program, type RunOptions } from "./RunCommand.ts"
import type { CommandNeeds } from "./CommandNeeds.ts"

interface CommandRequest {
  readonly callId: string
  readonly command: string
  readonly root: string
  readonly kinds: ReadonlyArray<ApprovalKind>
  readonly needs: CommandNeeds
  /** repositories outside of the workspace that would be written to */
  readonly writes: ReadonlyArray<string>
  /** why there is no sandbox, or what it cannot hold; "" when all is well */
  readonly remark: string
}

/** The question to the user about a command; everything that would run is in `detail`, word for word. */
const questionOf = (request: CommandRequest): Question => {
  const { callId, command, root, kinds, needs, writes, remark } = request
  const isPlainCommit = needs.isPlainCommit && kinds.length === 1 && kinds[0] === "commit"
  const notes = [...writes.map((path) => `It may write to ${path}.`), ...(remark === "" ? [] : [remark])]
  return {
    // The same words with other rights are another question.
    key: JSON.stringify(isPlainCommit ? ["plain commit", writes] : [kinds, command, writes]),
    // A rule does not tell which repositories elsewhere it would open, and a plain commit is as wide as one already.
    ...(!isPlainCommit && writes.length === 0 && { subject: { type: "command" as const, command } }),
    ask: {
      callId,
      kinds,
      title: `Run a command ${kinds.map((kind) => kindsOfNeed[kind].says).join("; ")}`,
      detail: [command, ...notes].join("\n\n"),
      scope: isPlainCommit
        ? `git add, git commit and git's status, diff, log and show in ${root}, without hooks`
        : `Exactly this command in ${root}, ${kinds.join(" and ")} included`
    }
  }
}

/** The settings of the commands of one workspace. */
interface CommandSettings {
  readonly jail: Jail
  readonly survey: Survey
  readonly root: string
  /** the client's own directories that lie in the workspace, and those that do not */
  readonly closed: ReadonlyArray<string>
  readonly hidden: ReadonlyArray<string>
  /** whole outputs go here */
  readonly outputs: string
  /** the .gitconfig in the home directory of commands */
  readonly gitIdentity: string
  readonly sandbox: Bubblewrap | { readonly reason: string }
  readonly network: "ask" | "off"
  readonly approvals: Approvals
  readonly mountPoints: MountPoints
}

/** A command with all that was decided about it. */
interface Decided {
  readonly command: string
  readonly kinds: ReadonlyArray<ApprovalKind>
  readonly surroundings: Surroundings
  readonly access: GitAccess
  readonly plan: MountPlan
  readonly network: boolean
  readonly sockets: boolean
}

/** The reader of shells is loaded with the first command: without it the client starts 8 % sooner. */
let loadNeeds: Promise<typeof import("./CommandNeeds.ts")> | undefined

const accessOf = (kinds: ReadonlyArray<ApprovalKind>): GitAccess =>
  kinds.includes("repository") ? "all" : kinds.includes("commit") ? "commit" : "look"

const writtenOutside = (root: string, { main }: GitLayout): ReadonlyArray<string> =>
  main === undefined
    ? []
    : [...new Set([main.gitDir, main.commonDir])].filter((directory) => !isWithin(root, directory))

const remarkOf = ({ sandbox }: CommandSettings, { plan, surroundings }: Decided): string =>
  "reason" in sandbox ? `No sandbox: ${sandbox.reason}.` : unheld(plan, surroundings)

/** The needs that a client without the network never grants: a service behind a Unix socket may have it. */
const switchedOff: Readonly<Partial<Record<ApprovalKind, string>>> = {
  network: "The network is",
  sockets: "Unix sockets, with the network, are"
}

const shell = (): string => (existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh")

const shellArguments = (command: string): ReadonlyArray<string> =>
  shell() === "/bin/bash" ? ["--noprofile", "--norc", "-c", command] : ["-c", command]

/** Without a sandbox, at least no program of the command can raise rights (prctl(2), PR_SET_NO_NEW_PRIVS). */
const withoutSandbox = (root: string, command: string): Pick<Program, "file" | "args"> => {
  const setpriv = process.platform === "linux" ? findProgram("setpriv", root) : undefined
  const run = [shell(), ...shellArguments(command)]
  return setpriv === undefined
    ? { file: shell(), args: shellArguments(command) }
    : { file: setpriv, args: ["--no-new-privs", "--", ...run] }
}

const programOf = (settings: CommandSettings, decided: Decided, home: string): Program => {
  const { root, hidden, sandbox, outputs, gitIdentity } = settings
  const { command, plan, network, sockets } = decided
  const { layout } = decided.surroundings
  if ("reason" in sandbox) {
    const env = commandEnvironment(process.env, { home, network: true })
    return { ...withoutSandbox(root, command), cwd: root, env, reportsStatus: false }
  }
  const own = sandboxArguments(sandbox, { root, layout, plan, hidden, network, outputs, gitIdentity })
  const env = commandEnvironment(process.env, { home, network })
  const args = [...own, shell(), ...shellArguments(command)]
  const filter = sandbox.filter === true ? { filter: { sockets } } : {}
  return { file: sandbox.program, args, cwd: root, env, reportsStatus: true, ...filter }
}

/** proc.exec. */
export class CommandRunner {
  readonly #settings: CommandSettings
  /**
   * Surveyed only while no command runs, and kept while any does: every command finds its paths mounted, so that none
   * can put a link in their place before the next mount. Files made by a running command are not in it.
   */
  #surroundings: Promise<Surroundings> | undefined
  #active = 0
  readonly #workspaceCheck: WorkspaceCheck

  constructor(settings: CommandSettings) {
    this.#settings = settings
    this.#workspaceCheck = new WorkspaceCheck(settings.jail, settings.survey)
  }

  async run(
    { command, timeout = agentLimits.execSeconds }: typeof ExecParams.Type,
    call: ToolCall,
    hooks: ToolHooks
  ): Promise<typeof ExecResult.Type> {
    if (command.includes("\0")) throw new ToolFailure("invalid_params", "A command has no NUL characters")
    this.#active++
    try {
      const decided = await this.#decide(command, call, hooks)
      if (hooks.signal.aborted) throw new ToolFailure("cancelled", "The call was cancelled")
      const seconds = Math.min(
        timeout,
        call.timeoutMs > 0 ? call.timeoutMs / 1000 : agentLimits.execSecondsMax
      )
      const output = new CommandOutput(this.#settings.outputs, hooks.onOutput)
      const begun = this.#workspaceCheck.begin(decided.surroundings)
      const ended = await this.#run(decided, {
        timeoutMillis: seconds * 1000,
        signal: hooks.signal,
        onOutput: (stream, data) => output.push(stream, data)
      }).finally(async () => {
        const given = { ...decided, isHeld: this.#isHeld, isAlone: this.#active === 1 }
        for (const line of await this.#workspaceCheck.undo(begun, given))
          output.push("stderr", Buffer.from(`\n[${line}]\n`))
      })
      return this.#result(ended, output, decided, seconds)
    } finally {
      if (--this.#active === 0) this.#surroundings = undefined
    }
  }

  async #run(decided: Decided, options: RunOptions): Promise<Ended> {
    const settings = this.#settings
    if (this.#isHeld)
      return settings.mountPoints.during(decided.plan.mounts, () =>
        runCommand(programOf(settings, decided, sandboxHome()), options)
      )
    const home = await mkdtemp(join(tmpdir(), "signalbox-home-"))
    try {
      await copyFile(settings.gitIdentity, join(home, ".gitconfig"))
      return await runCommand(programOf(settings, decided, home), options)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  }

  get #isHeld(): boolean {
    return !("reason" in this.#settings.sandbox)
  }

  /** Asks for the needs that require it; returns the allowed ones. */
  async #decide(command: string, { callId }: ToolCall, { approve }: ToolHooks): Promise<Decided> {
    const { root, network, approvals, sandbox } = this.#settings
    const { needsOf } = await (loadNeeds ??= import("./CommandNeeds.ts"))
    const needs = needsOf(command)
    if (needs.privileged !== undefined)
      throw denied(`${needs.privileged} raises rights: such commands are never run here`)
    const lacking = network === "off" ? needs.kinds.find((kind) => kind in switchedOff) : undefined
    if (lacking !== undefined) throw denied(`${switchedOff[lacking]} switched off for this client`)
    const filters = "filter" in sandbox && sandbox.filter === true
    const before = await (this.#surroundings ??= this.#workspaceCheck.survey())
    const kinds = needs.kinds.filter((kind) => kind !== "sockets" || filters)
    const decided = this.#planned(command, [...kinds], before)
    const { access, plan } = decided
    if (!this.#isHeld) kinds.push("unsandboxed")
    else if (unheld(plan, before) !== "" && !kinds.includes("repository")) kinds.push("repository")
    if (kinds.length === 0) return decided
    const writes = access === "look" ? [] : writtenOutside(root, before.layout)
    const remark = remarkOf(this.#settings, decided)
    const question = questionOf({ callId, command, root, kinds, needs, writes, remark })
    if (!(await approvals.allows(question, approve)))
      throw denied(`The user did not allow this command (${kinds.join(", ")})`)
    if (this.#active > 1) return decided
    // Files that the user has made while the question was open are theirs.
    return this.#planned(command, decided.kinds, await (this.#surroundings = this.#workspaceCheck.survey()))
  }

  #planned(command: string, kinds: ReadonlyArray<ApprovalKind>, surroundings: Surroundings): Decided {
    const { root, closed, sandbox } = this.#settings
    const { layout } = surroundings
    const access = accessOf(kinds)
    const { sealed, named } = configuredIn(root, layout)
    const selfRunning = kinds.includes("self_running") ? [] : selfRunningIn(root, surroundings, named)
    const plan = mountPlan({ root, layout, sealed, selfRunning, closed }, access)
    const network = kinds.includes("network")
    const filters = "filter" in sandbox && sandbox.filter === true
    const sockets = network || kinds.includes("sockets") || !filters
    return { command, kinds, surroundings, access, plan, network, sockets }
  }

  #result(
    { exitCode, signal, stopped, hasRun }: Ended,
    printed: CommandOutput,
    decided: Decided,
    seconds: number
  ): typeof ExecResult.Type {
    const { output: text, ...rest } = printed.end()
    if (stopped === "timeout")
      throw new ToolFailure(
        "timeout",
        `The command was ended after ${seconds} s. Its output up to then:\n${text}`
      )
    if (stopped === "cancelled")
      throw new ToolFailure("cancelled", `The command was cancelled. Its output up to then:\n${text}`)
    if (!hasRun) throw new ToolFailure("exec_failed", `The sandbox could not be set up: ${text.trim()}`)
    const failure = this.#isHeld ? failureIn(decided.command, text, exitCode) : undefined
    const hint = failure === undefined ? "" : missedNeeds(decided.command, failure, decided)
    const { root } = this.#settings
    const lacks = failure !== undefined && lacksSelfRunning(root, failure, decided.plan)
    const output = text + hint + (lacks ? missedSelfRunning : "")
    return { exitCode, ...(signal !== undefined && { signal }), output, ...rest }
  }
}
