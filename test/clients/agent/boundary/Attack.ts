import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import type { Approval, ApprovalAsk } from "#src/clients/agent/boundary/Approval.ts"
import { ToolRunner } from "#src/clients/agent/tools/ToolRunner.ts"
import type { ToolOutcome } from "#src/clients/agent/tools/ToolCall.ts"
import { put } from "./TestWorkspace.ts"

/** A command, or a file that is written whole. */
export type AttackCall = string | { readonly write: string; readonly content: string }

/**
 * An attack in two steps: the model's calls, and the user's own command afterwards, on the host and outside of any sandbox.
 * `@PWN` stands for a shell command whose effect must not be there, `@ROOT` for the workspace. The same calls made without the
 * wall have that effect: else the case would show nothing.
 */
export interface Attack {
  readonly name: string
  /** the user's own doing before, a shell script in the workspace */
  readonly before?: string
  readonly calls: ReadonlyArray<AttackCall>
  readonly then: string
  /** the user's answer to all questions; else "no" */
  readonly answer?: Approval
  /** seconds until a command is ended */
  readonly timeout?: number
  /** all kinds that the user was asked for, in order; else none */
  readonly asked?: ReadonlyArray<string>
}

const scripts: Readonly<Record<string, string>> = {
  /** the files of a user's home directory */
  ".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
}

const environment = (base: string): NodeJS.ProcessEnv => ({
  PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
  HOME: join(base, "home"),
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
  npm_config_update_notifier: "false",
  LANG: "C"
})

/** A shell command of the user, on the host; its outcome is its effect. */
const asUser = (base: string, directory: string, script: string): string => {
  const { stdout, stderr } = spawnSync("/bin/bash", ["-c", script], {
    cwd: directory,
    env: environment(base),
    encoding: "utf8",
    timeout: 60_000
  })
  return `${stdout}${stderr}`
}

interface Stage {
  readonly base: string
  readonly root: string
  readonly canary: string
  readonly runner: ToolRunner
  readonly asked: Array<ApprovalAsk>
  answer: Approval
}

const filled = (stage: Stage, root: string, text: string): string =>
  text.replaceAll("@PWN", `touch ${stage.canary}`).replaceAll("@ROOT", root)

/** Attacks of one kind share a workspace, which is as `template` (a shell script) makes it before each. */
export class AttackStage {
  readonly #options: { readonly template: string; readonly sandbox: "auto" | "off" }
  #stage: Stage | undefined

  constructor(template: string, sandbox: "auto" | "off" = "auto") {
    this.#options = { template, sandbox }
  }

  get stage(): Stage {
    assert.isDefined(this.#stage)
    return this.#stage as Stage
  }

  async open(): Promise<void> {
    const base = realpathSync(mkdtempSync(join(tmpdir(), "attack-")))
    const root = join(base, "workspace")
    for (const [name, text] of Object.entries(scripts)) put(join(base, "home", name), text)
    mkdirSync(join(base, "template"))
    asUser(base, join(base, "template"), this.#options.template)
    cpSync(join(base, "template"), root, { recursive: true, verbatimSymlinks: true })
    const runner = await ToolRunner.open({
      root,
      configDir: join(base, "client", "config"),
      stateDir: join(base, "client", "state"),
      sandbox: this.#options.sandbox,
      network: "off"
    })
    this.#stage = { base, root, canary: join(base, "pwned"), runner, asked: [], answer: "no" }
  }

  async close(): Promise<void> {
    await this.stage.runner.close()
    rmSync(this.stage.base, { recursive: true, force: true })
  }

  /** The workspace as in the beginning; its own directory stays, which is held open. */
  reset(): void {
    const { base, root, canary, asked } = this.stage
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true, force: true })
    cpSync(join(base, "template"), root, { recursive: true, verbatimSymlinks: true })
    rmSync(canary, { force: true })
    asked.length = 0
    this.stage.answer = "no"
  }

  call(call: AttackCall, timeout = 20, signal = new AbortController().signal): Promise<ToolOutcome> {
    const { stage } = this
    const fill = (text: string): string => filled(stage, stage.root, text)
    const made =
      typeof call === "string"
        ? ({ method: "proc.exec", params: { command: fill(call), timeout } } as const)
        : ({ method: "fs.write", params: { path: call.write, content: fill(call.content) } } as const)
    const approve = (ask: ApprovalAsk): Promise<Approval> => {
      stage.asked.push(ask)
      return Promise.resolve(stage.answer)
    }
    const hooks = { signal, onOutput: () => undefined, approve }
    return stage.runner.run({ callId: "call", timeoutMs: 30_000, ...made }, hooks)
  }

  user(script: string): string {
    const { base, root } = this.stage
    return asUser(base, root, filled(this.stage, root, script))
  }

  hasEffect(): boolean {
    return existsSync(this.stage.canary)
  }

  /** Without the wall: the calls as a program of the user's would make them. */
  control({ before = "", calls, then }: Attack): void {
    const { stage } = this
    const root = join(stage.base, "control")
    rmSync(root, { recursive: true, force: true })
    cpSync(join(stage.base, "template"), root, { recursive: true, verbatimSymlinks: true })
    const told = [asUser(stage.base, root, filled(stage, root, before))]
    for (const call of calls)
      if (typeof call !== "string") put(join(root, call.write), filled(stage, root, call.content))
      else told.push(asUser(stage.base, root, filled(stage, root, call.replace(/\nsleep 1000$/, ""))))
    rmSync(stage.canary, { force: true })
    told.push(asUser(stage.base, root, filled(stage, root, then)))
    assert.isTrue(this.hasEffect(), `without the wall nothing happened: ${told.join("\n")}`)
  }

  async attack(attack: Attack): Promise<void> {
    this.reset()
    this.control(attack)
    this.reset()
    const { before = "", calls, then, answer = "no", timeout, asked = [] } = attack
    this.stage.answer = answer
    this.user(before)
    const told: Array<string> = []
    for (const call of calls) told.push(JSON.stringify(await this.call(call, timeout)))
    assert.isFalse(this.hasEffect(), `a call had the effect: ${told.join("\n")}`)
    assert.deepStrictEqual(
      this.stage.asked.flatMap(({ kinds }) => kinds),
      asked,
      told.join("\n")
    )
    const said = this.user(then)
    assert.isFalse(this.hasEffect(), `the user's command had the effect:\n${told.join("\n")}\n${said}`)
  }
}

/** A test for each attack of a table. */
export const attacksOn = (stage: AttackStage, attacks: ReadonlyArray<Attack>): void => {
  beforeAll(() => stage.open())
  afterAll(() => stage.close())
  for (const attack of attacks) it(attack.name, () => stage.attack(attack))
}
