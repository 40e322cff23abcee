import { createHash } from "node:crypto"
import { mkdir, readdir, rm, stat } from "node:fs/promises"
import { join } from "node:path"
import { Result, Schema } from "effect"
import {
  EditParams,
  ExecParams,
  GlobParams,
  GrepParams,
  ListParams,
  ReadParams,
  WriteParams
} from "#schemas/agents/ToolCall.ts"
import type { Approval, ApprovalAsk } from "../boundary/Approval.ts"
import { Approvals } from "../boundary/Approvals.ts"
import { configuredIn } from "../boundary/GitConfiguration.ts"
import { gitLayoutOf } from "../boundary/GitLayout.ts"
import { isWithin, openWorkspace, realPath } from "../boundary/OpenWorkspace.ts"
import { linkedSelfRunning } from "../boundary/SelfRunning.ts"
import { Survey, type SurveyBounds } from "../boundary/Survey.ts"
import type { Workspace } from "../boundary/Walk.ts"
import { whereabouts } from "../boundary/Whereabouts.ts"
import { findBubblewrap } from "../exec/Bubblewrap.ts"
import { CommandRunner } from "../exec/CommandRunner.ts"
import { writeGitIdentity } from "../exec/CommandEnvironment.ts"
import { MountPoints } from "../exec/MountPoints.ts"
import { CallOrder, pathOf } from "./CallOrder.ts"
import { editFile, tolerantEditParams } from "./EditFile.ts"
import { failureOf } from "./FailureOf.ts"
import { listDirectory } from "./ListDirectory.ts"
import { readFile } from "./ReadFile.ts"
import { searchInThread, type Search } from "./SearchThread.ts"
import type { ToolCall, ToolHooks, ToolOutcome, TurnHooks } from "./ToolCall.ts"
import { ToolFailure } from "./ToolFailure.ts"
import { writeFile } from "./WriteFile.ts"
import { questionOfWrite, type AskWrite } from "./WriteQuestion.ts"

export interface ToolRunnerOptions {
  /** the workspace: an existing directory, neither the home directory nor one above it */
  readonly root: string
  /** the client's own configuration, where `always` is kept; no tool reads or writes it */
  readonly configDir: string
  /** the client's own state, where whole outputs of commands are kept; no tool writes it */
  readonly stateDir: string
  /** `auto`: commands run in the system's sandbox where there is one; `off`: every command asks */
  readonly sandbox: "auto" | "off"
  /** `off`: commands never get the network, and no question is asked */
  readonly network: "ask" | "off"
  /** how much of the workspace is looked at before and after a command */
  readonly bounds?: SurveyBounds
}

/** A search that takes longer is ended. */
const searchMillis = 60_000

const decode = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, params: unknown): S["Type"] => {
  const result = Schema.decodeUnknownResult(schema)(params)
  if (Result.isFailure(result)) throw new ToolFailure("invalid_params", result.failure.message)
  return result.success
}

const outcomeOf = (error: unknown, path: string): ToolOutcome => {
  const { code, message } = failureOf(error, path)
  const isRefused = code === "denied" || code === "outside_workspace"
  return { ok: false, error: { code, message }, ...(isRefused && { denied: true }) }
}

/** Outputs that are older are deleted at the next start. */
const outputDays = 7

const removeOld = async (directory: string): Promise<void> => {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    const age = Date.now() - (await stat(path)).mtimeMs
    if (age > outputDays * 24 * 3_600_000) await rm(path, { force: true })
  }
}

/** The directory of a workspace's outputs: its own, as another server may be asked about another workspace. */
const outputsOf = async (stateDir: string, root: string): Promise<string> => {
  const name = createHash("sha256").update(root).digest("hex").slice(0, 32)
  const directory = join(realPath(stateDir), "outputs", name)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await removeOld(directory)
  return directory
}

const cancelled = (): ToolFailure => new ToolFailure("cancelled", "The call was cancelled")

/** A question ends with its call, and a later answer counts for nothing. */
const approvalOf = async (ask: ApprovalAsk, { signal, approve }: ToolHooks): Promise<Approval> => {
  if (signal.aborted) throw cancelled()
  const { promise: gone, reject } = Promise.withResolvers<never>()
  const cancel = (): void => reject(cancelled())
  signal.addEventListener("abort", cancel, { once: true })
  try {
    return await Promise.race([approve(ask), gone])
  } finally {
    signal.removeEventListener("abort", cancel)
  }
}

/** Runs what the server asks for, within this machine's rules. Nothing that a call says changes those. */
export class ToolRunner {
  /** the user's permissions, to be listed and revoked */
  readonly approvals: Approvals
  readonly #workspace: Workspace
  readonly #outputs: Workspace
  readonly #commands: CommandRunner
  readonly #order: CallOrder

  private constructor(
    workspace: Workspace,
    outputs: Workspace,
    approvals: Approvals,
    commands: CommandRunner
  ) {
    this.#workspace = workspace
    this.#outputs = outputs
    this.approvals = approvals
    this.#commands = commands
    this.#order = new CallOrder((path) => whereabouts(workspace, path))
  }

  /** Rejects with why the directory cannot be a workspace. */
  static async open({
    root,
    configDir,
    stateDir,
    sandbox,
    network,
    bounds
  }: ToolRunnerOptions): Promise<ToolRunner> {
    const closed = [configDir, stateDir].map(realPath)
    const configured = configuredIn(realPath(root), gitLayoutOf(realPath(root)))
    const workspace = openWorkspace(root, {
      closed,
      sealed: () => configured.sealed,
      named: (real) => [...configured.named, ...linkedSelfRunning(real)]
    })
    const real = workspace.jail.root
    await mkdir(stateDir, { recursive: true, mode: 0o700 })
    const outputs = await outputsOf(stateDir, real)
    const gitIdentity = join(realPath(stateDir), "gitconfig")
    await writeGitIdentity(gitIdentity, real)
    const approvals = new Approvals(configDir, real)
    const survey = new Survey(real, bounds)
    const commands = new CommandRunner({
      survey,
      jail: workspace.jail,
      root: real,
      closed: closed.filter((directory) => isWithin(real, directory)),
      hidden: closed.filter((directory) => !isWithin(real, directory)),
      outputs,
      gitIdentity,
      sandbox: sandbox === "off" ? { reason: "it is switched off" } : await findBubblewrap(real),
      network,
      approvals,
      mountPoints: new MountPoints()
    })
    return new ToolRunner(workspace, openWorkspace(outputs, { closed: [] }), approvals, commands)
  }

  /** Makes a call at once, beside all others. Never rejects: every failure is an outcome. */
  async run(call: ToolCall, hooks: ToolHooks): Promise<ToolOutcome> {
    try {
      if (hooks.signal.aborted) throw cancelled()
      const result = this.#result(call, { ...hooks, approve: (ask) => approvalOf(ask, hooks) })
      return { ok: true, result: await result }
    } catch (error) {
      return outcomeOf(error, pathOf(call.params))
    }
  }

  /** Makes a call behind those that were given here before and touch what it touches. Never rejects. */
  async runInTurn(call: ToolCall, { begin, ...hooks }: TurnHooks): Promise<ToolOutcome> {
    const turn = this.#order.enter(call, hooks.signal)
    try {
      await turn.come
      await begin()
      return await this.run(call, hooks)
    } catch (error) {
      return outcomeOf(error, pathOf(call.params))
    } finally {
      turn.leave()
    }
  }

  close(): Promise<void> {
    this.#workspace.jail.close()
    this.#outputs.jail.close()
    return Promise.resolve()
  }

  #result(call: ToolCall, hooks: ToolHooks): unknown {
    const { method, params } = call
    const workspace = this.#workspace
    switch (method) {
      case "fs.read":
        return this.#read(decode(ReadParams, params))
      case "fs.write":
        return writeFile(workspace, decode(WriteParams, params), this.#askWrite(call, hooks))
      case "fs.edit":
        return editFile(
          workspace,
          decode(EditParams, tolerantEditParams(params)),
          this.#askWrite(call, hooks)
        )
      case "fs.list":
        return listDirectory(workspace, decode(ListParams, params))
      case "fs.glob":
        return this.#search({ method, params: decode(GlobParams, params) }, call, hooks)
      case "fs.grep":
        return this.#search({ method, params: decode(GrepParams, params) }, call, hooks)
      case "proc.exec":
        return this.#commands.run(decode(ExecParams, params), call, hooks)
      default:
        throw new ToolFailure("invalid_params", `This client has no tool ${String(method)}`)
    }
  }

  /** Whole outputs of commands lie outside of the workspace; results name them, so they can be read. */
  #read(params: typeof ReadParams.Type): unknown {
    const isOutput = params.path.startsWith(`${this.#outputs.jail.root}/`)
    return readFile(isOutput ? this.#outputs : this.#workspace, params)
  }

  #search(search: Search, { timeoutMs }: ToolCall, { signal }: ToolHooks): Promise<unknown> {
    const { jail, protection } = this.#workspace
    const millis = Math.min(timeoutMs > 0 ? timeoutMs : searchMillis, searchMillis)
    return searchInThread(search, { jail: jail.handle, protection }, { millis, signal })
  }

  #askWrite({ callId }: ToolCall, { approve }: ToolHooks): AskWrite {
    return (write) => this.approvals.allows(questionOfWrite(callId, write), approve)
  }
}
