import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, realpathSync } from "node:fs"
import { join, normalize } from "node:path"

const main = normalize(join(import.meta.dirname, "../../../src/clients/agent/main.ts"))

export interface AgentResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface AgentProcess {
  readonly child: ChildProcess
  /** everything printed so far */
  readonly out: () => string
  readonly ended: Promise<AgentResult>
}

/** The directories of a test's client: its workspace and its state. */
export interface Home {
  readonly workspace: string
  readonly configDir: string
  readonly stateDir: string
  readonly environment: Readonly<Record<string, string>>
}

export const makeHome = (directory: string, server: { readonly url: string }): Home => {
  const real = realpathSync(directory)
  const workspace = join(real, "work")
  mkdirSync(workspace)
  return {
    workspace,
    configDir: join(real, "config/signalbox-agent"),
    stateDir: join(real, "state/signalbox-agent"),
    environment: {
      PATH: process.env["PATH"] ?? "",
      HOME: join(real, "home"),
      XDG_CONFIG_HOME: join(real, "config"),
      XDG_STATE_HOME: join(real, "state"),
      SIGNALBOX_URL: server.url,
      SIGNALBOX_KEY: "sk-test"
    }
  }
}

/** Starts `signalbox-agent` in a process of its own, in the workspace, with nothing of this one's settings. */
export const startAgent = (
  home: Home,
  args: ReadonlyArray<string>,
  options: { readonly input?: string; readonly environment?: Readonly<Record<string, string>> } = {}
): AgentProcess => {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: home.workspace,
    env: { ...home.environment, ...options.environment },
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"]
  })
  let out = ""
  let err = ""
  child.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()))
  child.stderr?.on("data", (chunk: Buffer) => (err += chunk.toString()))
  child.stdin?.end(options.input)
  const ended = new Promise<AgentResult>((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code) => resolve({ code, out, err }))
  })
  return { child, ended, out: () => out }
}
