import { dirname } from "node:path"
import { ProcessTerminal, type Terminal } from "@earendil-works/pi-tui"
import type { AgentModel } from "#schemas/agents/ServerFrame.ts"
import type { Client } from "../connection/Client.ts"
import { ConnectionClosed } from "../connection/ConnectionClosed.ts"
import { codeOfClosed, exitCodes } from "../ExitCodes.ts"
import type { Attached } from "../prompt/AttachedFiles.ts"
import { AgentTerminal } from "./AgentTerminal.ts"
import type { Permissions } from "./PermissionText.ts"
import { PromptHistory } from "./PromptHistory.ts"
import { safeLine, safeText } from "./SafeText.ts"
import { makeTheme } from "./Theme.ts"

export interface TerminalOptions {
  readonly version: string
  readonly workspace: { readonly root: string; readonly name: string }
  /** where earlier prompts are kept; its directory is made */
  readonly historyFile: string
  readonly permissions: Permissions
  /** the models that the key may use */
  readonly models: () => Promise<ReadonlyArray<AgentModel>>
  /** paths relative to the workspace's root */
  readonly files: () => Promise<ReadonlyArray<string>>
  /** reads the files that a prompt names with `@` */
  readonly attach: (text: string) => Promise<Attached>
  /** asked at once */
  readonly prompt?: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** other than the process's own: for tests */
  readonly terminal?: Terminal
  readonly now?: () => number
  readonly later?: (millis: number, run: () => void) => () => void
}

/** Why there can be no interactive terminal here; undefined: there can. */
export const noTerminal = (
  environment: Readonly<Record<string, string | undefined>>,
  streams: { readonly input: boolean; readonly output: boolean }
): string | undefined => {
  const instead = "signalbox-agent -p 'what to do' works without one."
  if (!streams.input || !streams.output) return `Input or output is no terminal. ${instead}`
  const { TERM } = environment
  // Windows names no terminals, and has but one kind.
  const unnamed = (TERM ?? "") === "" && process.platform !== "win32"
  return unnamed || TERM === "dumb"
    ? `The terminal (TERM=${TERM ?? ""}) can not move its cursor. ${instead}`
    : undefined
}

const signals = {
  SIGHUP: exitCodes.terminated,
  SIGINT: exitCodes.interrupted,
  SIGTERM: exitCodes.terminated
} as const

/** Shows one session until the user leaves or it can not go on. Gives the exit code; `client` is closed then. */
export const runTerminal = async (client: Client, options: TerminalOptions): Promise<number> => {
  const { environment, now = Date.now, terminal = new ProcessTerminal(), version, workspace } = options
  let leave: (code: number) => void = () => undefined
  const leaving = new Promise<number>((resolve) => {
    leave = resolve
  })
  const shown = new AgentTerminal({
    ...options,
    client,
    terminal,
    now,
    theme: makeTheme((environment.NO_COLOR ?? "") === ""),
    heading: `signalbox-agent ${version} · ${safeLine(workspace.root)} · /help`,
    logDirectory: dirname(options.historyFile),
    history: new PromptHistory(options.historyFile),
    left: () => leave(exitCodes.completed),
    suspend: () => suspend(shown)
  })
  const release = guard(shown, leave)
  shown.start()
  let problem: string | undefined
  const unsubscribe = client.events.subscribe((event) => {
    if (event.type !== "link" || event.state !== "closed" || event.reason === "bye") return
    problem = event.problem
    leave(codeOfClosed(event.reason))
  })
  client.start().then(
    () => (options.prompt === undefined ? undefined : shown.submit(options.prompt, "steer")),
    (error: unknown) => {
      problem = error instanceof Error ? error.message : String(error)
      leave(error instanceof ConnectionClosed ? codeOfClosed(error.reason) : exitCodes.error)
    }
  )
  const code = await leaving
  unsubscribe()
  shown.stop()
  release()
  terminal.write(farewell(shown.state.session?.id, problem))
  await client.bye()
  return code
}

const farewell = (sessionId: string | undefined, problem: string | undefined): string =>
  [
    ...(problem === undefined ? [] : [safeLine(problem)]),
    ...(sessionId === undefined ? [] : [`To go on: signalbox-agent --resume ${safeLine(sessionId)}`])
  ]
    .map((line) => `${line}\r\n`)
    .join("")

const suspend = ({ screen }: AgentTerminal): void => {
  if (process.platform === "win32") return
  screen.restore()
  process.once("SIGCONT", () => {
    screen.resume()
    screen.repaint()
  })
  process.kill(process.pid, "SIGTSTP")
}

/** Restores the terminal at any exit. */
const guard = ({ screen }: AgentTerminal, leave: (code: number) => void): (() => void) => {
  const crashed = (error: unknown): void => {
    screen.restore()
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error)
    process.stderr.write(`${safeText(words)}\n`)
    // oxlint-disable-next-line unicorn/no-process-exit
    process.exit(exitCodes.error)
  }
  const restore = (): void => screen.restore()
  const ended = Object.entries(signals).map(([name, code]) => {
    const listener = (): void => leave(code)
    process.once(name, listener)
    return { name, listener }
  })
  process.once("uncaughtException", crashed)
  process.once("unhandledRejection", crashed)
  process.once("exit", restore)
  return () => {
    for (const { listener, name } of ended) process.off(name, listener)
    process.off("uncaughtException", crashed)
    process.off("unhandledRejection", crashed)
    process.off("exit", restore)
  }
}
