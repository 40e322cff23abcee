import { spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/**
 * The official conformance suite. It ends with an error for a failure that is not among the exceptions, and for an
 * exception that passes: a list of them is exact.
 */
const runner = join(
  createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/package.json"),
  "../dist/index.js"
)

export const conformance = async (
  args: ReadonlyArray<string>
): Promise<{ readonly code: number; readonly said: string }> => {
  const child = spawn(process.execPath, [runner, "server", ...args], { stdio: ["ignore", "pipe", "pipe"] })
  const said: Array<Buffer> = []
  child.stdout.on("data", (chunk: Buffer) => said.push(chunk))
  child.stderr.on("data", (chunk: Buffer) => said.push(chunk))
  const code = await new Promise<number>((ended) => child.on("close", (code) => ended(code ?? 1)))
  return { code, said: Buffer.concat(said).toString() }
}

/** A scenario, or one of its checks, and the reason why it does not pass. */
export type Exceptions = Readonly<Record<string, string>>

/** A file of exceptions, for `--expected-failures`. */
export const baselineOf = (exceptions: Exceptions) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const directory = await mkdtemp(join(tmpdir(), "signalbox-conformance-"))
        const lines = Object.keys(exceptions).map((name) => `  - ${name}\n`)
        await writeFile(join(directory, "expected.yml"), `server:\n${lines.join("")}`)
        return directory
      }),
      (made) => Effect.promise(() => rm(made, { recursive: true }))
    ),
    (directory) => join(directory, "expected.yml")
  )
