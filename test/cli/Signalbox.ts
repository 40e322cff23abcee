import { spawn } from "node:child_process"
import { join, normalize } from "node:path"

const root = normalize(join(import.meta.dirname, "../.."))

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs `signalbox` as a person does: the launcher, in a process of its own, with nothing of this one's settings. */
export const signalbox = (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  launcher = join(root, "src/cli/signalbox.mjs"),
  nodeOptions: ReadonlyArray<string> = []
): Promise<CommandResult> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeOptions, launcher, ...args], {
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
