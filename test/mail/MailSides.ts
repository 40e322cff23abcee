import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import type { MailServerOptions } from "./MailServerProcess.ts"

/** Processes that have loaded the server and wait to be told to start: loading takes most of a start. */
export class LoadedServers {
  private readonly waiting: Array<ReturnType<typeof spawnServer>> = []

  load(): void {
    this.waiting.push(spawnServer())
  }

  take(): ReturnType<typeof spawnServer> {
    return this.waiting.shift() ?? spawnServer()
  }

  end(): void {
    for (const child of this.waiting) child.kill("SIGKILL")
  }
}

const spawnServer = () =>
  spawn(process.execPath, [join(import.meta.dirname, "MailServerProcess.ts")], {
    stdio: ["pipe", "pipe", "pipe"]
  })

/** One of two servers on a Postgres, which is killed and started again. */
export class MailSide {
  url = ""
  private readonly options: MailServerOptions
  private readonly loaded: LoadedServers
  private child: ReturnType<typeof spawnServer> | undefined
  private errors = ""

  constructor(options: MailServerOptions, loaded: LoadedServers) {
    this.options = options
    this.loaded = loaded
    mkdirSync(options.dataDir, { recursive: true })
  }

  async start(): Promise<void> {
    const child = this.loaded.take()
    this.child = child
    child.stderr.on("data", (chunk) => (this.errors += String(chunk)))
    child.stdin.end(JSON.stringify(this.options))
    const port = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (/^\d+$/.test(line)) resolve(line)
      })
      child.once("close", () => reject(new Error(`it ended by itself: ${this.errors}`)))
    })
    this.url = `http://127.0.0.1:${port}`
    this.loaded.load()
  }

  async kill(): Promise<void> {
    const { child } = this
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, "close")
    child.kill("SIGKILL")
    await closed
  }
}
