import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { root, serverEnvironment } from "#test/harness/ServerProcess.ts"
import type { Reachable } from "#test/harness/ApiClient.ts"
import { type Requirement, requirement } from "#test/harness/Requirement.ts"

/** A language that a client is served for, with the interpreter that runs it. */
export interface Language {
  readonly name: string
  readonly file: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly present: Requirement
}

const language = (
  name: string,
  extension: string,
  command: string,
  ...args: ReadonlyArray<string>
): Language => ({
  name,
  file: `beacon.${extension}`,
  command,
  args,
  present: requirement(command, () =>
    spawnSync(command, ["--version"]).status === 0 ? undefined : `no ${command} on the PATH`
  )
})

/** With everything that these interpreters have to say about bad habits, which the tests want to be nothing. */
export const languages: ReadonlyArray<Language> = [
  language("Node", "mjs", process.execPath, "--throw-deprecation"),
  language("Python", "py", "python3", "-X", "dev", "-W", "error"),
  language("PHP", "php", "php", "-d", "error_reporting=-1", "-d", "display_errors=stderr")
]

/** Fetches a client as it is served, as an application would have it. */
export const download = async (server: Reachable, { file }: Language, directory: string): Promise<string> => {
  const response = await fetch(`${server.url}/scripts/${file}`)
  if (response.status !== 200) throw new Error(`${file}: ${response.status}`)
  const path = join(directory, file)
  await writeFile(path, await response.text())
  return path
}

export interface HostEvent {
  readonly url: string
  readonly name?: string
  readonly [field: string]: unknown
}

/** The client's messages to its application so far; errors are reported once. */
export interface Told {
  readonly dropped: number
  readonly errors: ReadonlyArray<{ readonly message: string; readonly urls: ReadonlyArray<string> }>
}

/** A process with the client in it. */
export interface ClientHost {
  readonly tell: (does: string, given?: object) => Promise<unknown>
  readonly record: (events: ReadonlyArray<HostEvent>) => Promise<unknown>
  readonly told: () => Promise<Told>
  /** lets it end, without a word to the client; answers its exit code and its stderr */
  readonly end: () => Promise<{ readonly code: number | null; readonly complaints: string }>
  readonly kill: () => Promise<void>
}

export const hostsDirectory = join(root, "test/clients/hosts")

export const startHost = ({ args, command, file }: Language, client: string): ClientHost => {
  const script = join(hostsDirectory, file.replace("beacon", "host"))
  const child: ChildProcess = spawn(command, [...args, script, client], { env: serverEnvironment() })
  const { stderr, stdin, stdout } = child
  if (stdin === null || stdout === null || stderr === null) throw new Error("the host has no pipes")
  let complaints = ""
  stderr.on("data", (chunk) => (complaints += String(chunk)))
  const gone = new Promise<number | null>((resolve) => child.once("close", resolve))
  const answers = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const tell = async (does: string, given: object = {}): Promise<unknown> => {
    stdin.write(`${JSON.stringify({ does, ...given })}\n`)
    const { done, value } = await answers.next()
    if (done === true) throw new Error(`the application ended:\n${complaints}`)
    return (JSON.parse(value) as { answer: unknown }).answer
  }
  return {
    tell,
    record: (events) => tell("record", { events }),
    told: async () => (await tell("told")) as Told,
    end: async () => {
      stdin.end()
      return { code: await gone, complaints }
    },
    kill: async () => {
      child.kill("SIGKILL")
      await gone
    }
  }
}
