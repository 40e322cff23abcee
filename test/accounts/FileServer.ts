import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { FileServerOptions } from "./FileServerProcess.ts"

const program = join(import.meta.dirname, "FileServerProcess.ts")

/** Servers of files, which end with the scope. */
export const fileServers = (all: ReadonlyArray<FileServerOptions>) =>
  Effect.acquireRelease(
    Effect.sync(() => all.map((options) => new FileServer(options))),
    (servers) => Effect.promise(() => Promise.all(servers.map((server) => server.end())))
  )

/** A server of files in a process of its own, which a test kills and starts again. */
export class FileServer {
  /** undefined: it is not there, or not yet */
  url: string | undefined
  /** requests that it has answered since its start */
  answers = 0
  private child: ChildProcess | undefined
  /** its log of warnings and errors */
  errors = ""
  private readonly options: FileServerOptions

  constructor(options: FileServerOptions) {
    this.options = options
  }

  get isGone(): boolean {
    return this.child === undefined || this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Answers its address; undefined: it has ended before. */
  async launch(): Promise<string | undefined> {
    const child = spawn(process.execPath, [program, JSON.stringify(this.options)], {
      stdio: ["ignore", "pipe", "pipe"]
    })
    this.child = child
    this.answers = 0
    child.stderr.on("data", (chunk) => (this.errors += String(chunk)))
    this.url = await new Promise<string | undefined>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (/^\d+$/.test(line)) resolve(`http://127.0.0.1:${line}`)
      })
      child.once("close", () => resolve(undefined))
    })
    return this.url
  }

  /** Answers the address of one that has to start. */
  async start(): Promise<string> {
    return (await this.launch()) ?? assert.fail(`it ended by itself: ${this.errors}`)
  }

  /** Asserts that it was there until now. */
  async kill(): Promise<void> {
    assert.isFalse(this.isGone, `it ended by itself: ${this.errors}`)
    await this.end()
  }

  /** Kills it if it is there. */
  async end(): Promise<void> {
    const { child } = this
    this.url = undefined
    if (child === undefined || this.isGone) return
    const closed = once(child, "close")
    child.kill("SIGKILL")
    await closed
  }
}
