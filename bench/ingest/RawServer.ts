import { fork } from "node:child_process"
import { once } from "node:events"
import { nodeOn, serverCore } from "#bench/harness/Cores.ts"
import * as Addon from "#src/infra/uws/Addon.ts"

/**
 * The limit: uWebSockets.js alone, which reads the headers and the body that ingest reads and answers 202, in a process
 * of its own on the server's core.
 */
export interface RawServer {
  readonly port: number
  readonly pid: number
  readonly stop: () => void
}

/** What the endpoint for browser events reads. */
const headers = [
  "user-agent",
  "x-forwarded-for",
  "cf-ipcountry",
  "cloudfront-viewer-country",
  "x-vercel-ip-country",
  "fastly-geo-country",
  "content-length",
  "transfer-encoding"
]

const addon = (): Addon.Loaded => Addon.load({ maxHeaderBytes: 16 * 1024 })

export const unavailable = (): string | undefined => {
  const loaded = addon()
  return loaded._tag === "Loaded" ? undefined : loaded.reasons.join("; ")
}

export const startRaw = async (): Promise<RawServer> => {
  const child = fork(import.meta.filename, nodeOn(serverCore))
  const [port]: ReadonlyArray<number> = await (once(child, "message") as Promise<ReadonlyArray<number>>)
  return { port: port ?? 0, pid: child.pid ?? 0, stop: () => child.disconnect() }
}

const serve = (): void => {
  const loaded = addon()
  if (loaded._tag === "NotLoaded") throw new Error(loaded.reasons.join("; "))
  const app = loaded.addon.App()
  app.post("/api/event", (response, request) => {
    const read = headers.map((name) => request.getHeader(name))
    response.onAborted(() => undefined)
    const chunks: Array<Buffer> = []
    response.onData((chunk, isLast) => {
      if (!isLast) chunks.push(Buffer.from(Buffer.from(chunk)))
      else {
        const body = chunks.length === 0 ? Buffer.from(chunk) : Buffer.concat([...chunks, Buffer.from(chunk)])
        const isRead = body.length > 0 && read[0] !== ""
        response.writeStatus(isRead ? "202 Accepted" : "400 Bad Request")
        response.writeHeader("Access-Control-Allow-Origin", "*").end()
      }
    })
  })
  app.listen("127.0.0.1", 0, 0, (socket) => {
    if (socket === false) throw new Error("Could not listen")
    process.send?.(loaded.addon.us_socket_local_port(socket))
  })
  process.once("disconnect", () => process.exit(0))
}

if (process.argv[1] === import.meta.filename) serve()
