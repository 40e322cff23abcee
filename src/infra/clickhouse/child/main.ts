import { existsSync, readdirSync, readFileSync } from "node:fs"
import { setPriority } from "node:os"
import { type ChildOptions, type ChildReady, optionsVariable } from "./ChildOptions.ts"
import { Engine } from "./Engine.ts"
import { HttpInterface } from "./HttpInterface.ts"

/**
 * The process of the embedded ClickHouse: the engine behind a loopback HTTP port. It lives as long as its parent: when
 * the channel between them closes, after any end of the parent, it stops.
 */
const options: ChildOptions = JSON.parse(process.env[optionsVariable] ?? "{}")
delete process.env[optionsVariable]

/** Damage that a start does not mend must not keep the process starting. */
const mend = (): void => {
  if (process.uptime() * 1_000 > options.mendMillis) stop()
}

const engine = new Engine({ ...options, directory: options.engineDirectory, onDamage: mend })
const { server } = new HttpInterface(engine, options)

/** On Linux each thread has a niceness of its own, and a directory here. */
const threads = "/proc/self/task"
const mergeNiceness = 10
const mergeLookMillis = 5_000

const isMerging = (thread: string): boolean => {
  try {
    return readFileSync(`${threads}/${thread}/comm`, "utf8").startsWith("MergeMutate")
  } catch (error) {
    // The thread ended meanwhile.
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH"))
      return false
    throw error
  }
}

/**
 * Merges and deletions of rows stand behind statements that callers wait for, and behind the server on the same cores.
 * ClickHouse has no setting for it and begins these threads when it needs them.
 */
const holdMergesBack = (): void => {
  for (const thread of readdirSync(threads)) if (isMerging(thread)) setPriority(Number(thread), mergeNiceness)
}
if (existsSync(threads)) setInterval(holdMergesBack, mergeLookMillis).unref()

let isStopping = false
function stop(): void {
  if (isStopping) return
  isStopping = true
  // The engine cannot interrupt a statement. Acknowledged rows are on disk, so an end by force loses nothing.
  setTimeout(() => process.kill(process.pid, "SIGKILL"), options.stopMillis).unref()
  server.close(() => {
    void engine.close().finally(() => process.exit(0))
  })
  server.closeIdleConnections()
}
process.once("disconnect", stop)
process.once("SIGTERM", stop)
process.once("SIGINT", stop)

const listen = (port: number): void => {
  server.listen(port, "127.0.0.1")
}
server.on("error", (error) => {
  if (!("code" in error) || error.code !== "EADDRINUSE") throw error
  listen(0)
})
server.on("listening", () => {
  const address = server.address()
  const ready: ChildReady = { port: typeof address === "object" && address !== null ? address.port : 0 }
  process.send?.(ready)
})
listen(options.port)
