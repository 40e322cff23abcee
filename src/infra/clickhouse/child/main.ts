import { type ChildOptions, type ChildReady, optionsVariable } from "./ChildOptions.ts"
import { Engine } from "./Engine.ts"
import { HttpInterface } from "./HttpInterface.ts"

/**
 * The process of the embedded ClickHouse: the engine behind a loopback HTTP port. It lives as long as its parent: when
 * the channel between them closes, after any end of the parent, it stops.
 */
const options: ChildOptions = JSON.parse(process.env[optionsVariable] ?? "{}")
delete process.env[optionsVariable]

const engine = new Engine({ ...options, directory: options.engineDirectory })
const { server } = new HttpInterface(engine, options)

let isStopping = false
const stop = (): void => {
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
