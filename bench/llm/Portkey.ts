import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { move, serverCore } from "#bench/harness/Cores.ts"
import { freePort, root } from "#test/harness/ServerProcess.ts"
import type { ForkedServer } from "#bench/harness/ForkedServer.ts"
import { probed } from "#bench/harness/Meter.ts"
import { Interrupted } from "#bench/harness/Interrupt.ts"
import { needProgram } from "#bench/harness/Program.ts"
import type { Size } from "#bench/harness/Suite.ts"

/** The peer from npm, kept in a folder that git does not see. */
const version = "1.15.2"
const directory = join(root, ".runtime/peers", `portkey-${version}`)
const file = "node_modules/@portkey-ai/gateway/build/start-server.js"
const entry = join(directory, file)

/**
 * Portkey is @portkey-ai/gateway from npm with one change: its streams fail on Node 20 and later, so `mutableHeaders.mjs`
 * gives it responses whose headers can be set.
 */

export const isPortkeyInstalled = (): boolean => existsSync(entry)

/** Installs it where it is missing, which takes the network. */
export const unavailablePortkey = async (size: Size, signal?: AbortSignal): Promise<string | undefined> => {
  if (isPortkeyInstalled()) return undefined
  if (size === "tiny") return `@portkey-ai/gateway ${version} is not installed by a tiny run`
  // npm takes half a package for a whole one: what was interrupted must not be found by the next run.
  const unfinished = `${directory}.unfinished`
  try {
    for (const one of [unfinished, directory]) rmSync(one, { recursive: true, force: true })
    mkdirSync(unfinished, { recursive: true })
    writeFileSync(join(unfinished, "package.json"), JSON.stringify({ private: true }))
    const asked = ["install", "--no-audit", "--no-fund", "--ignore-scripts", `@portkey-ai/gateway@${version}`]
    await needProgram("npm", asked, { cwd: unfinished, signal })
    if (!existsSync(join(unfinished, file))) return `@portkey-ai/gateway ${version} came without ${file}`
    renameSync(unfinished, directory)
    return undefined
  } catch (error) {
    if (!(error instanceof Error) || error instanceof Interrupted) throw error
    return error.message
  }
}

const isListening = async (port: number): Promise<boolean> => {
  try {
    await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer()
    return true
  } catch {
    // Not yet: the caller asks again.
    return false
  }
}

/** Headers with which it asks the bench's upstream. */
export const portkeyHeaders = (upstreamPort: number): Readonly<Record<string, string>> => ({
  "x-portkey-provider": "openai",
  "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/api/v1`,
  Authorization: "Bearer none"
})

export const portkeyPath = "/v1/chat/completions"

export const startPortkey = async (): Promise<ForkedServer> => {
  const port = await freePort()
  const shim = join(import.meta.dirname, "mutableHeaders.mjs")
  const child = spawn(process.execPath, ["--import", shim, entry, `--port=${port}`, "--headless"], {
    cwd: directory,
    env: { ...process.env, ...probed(), NODE_ENV: "production" },
    stdio: ["ignore", "ignore", "inherit"]
  })
  const exited = once(child, "exit")
  const pid = child.pid ?? 0
  move(pid, serverCore)
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`Portkey ended with ${child.exitCode}`)
    await pause(50)
  }
  return {
    port,
    pid,
    stop: async () => {
      child.kill()
      await exited
    }
  }
}
