import { spawn } from "node:child_process"
import { join, normalize } from "node:path"

const root = normalize(join(import.meta.dirname, "../.."))

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs `signalbox` in a process of its own, with nothing of this one's settings; Launcher.faults.test.ts holds the launcher. */
export const signalbox = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  entry = join(root, "src/cli/main.ts"),
  nodeOptions: ReadonlyArray<string> = []
): Promise<CommandResult> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeOptions, entry, ...args], {
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let out = ""
    let err = ""
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()))
    child.once("error", reject)
    child.once("close", (code) => resolve({ code, out, err }))
  })
