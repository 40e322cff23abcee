import { serverCore } from "#bench/harness/Cores.ts"
import { bodyOf, type ForkedServer, forkServer, serveForked } from "#bench/harness/ForkedServer.ts"

/**
 * The limit: uWebSockets.js alone, which reads the headers and the body that ingest reads and answers 202, in a process
 * of its own on the server's core.
 */
export const startRaw = (): Promise<ForkedServer> => forkServer(import.meta.filename, serverCore)

/** The request headers that the endpoint for browser events reads. */
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

const serve = (): void =>
  serveForked((app) => {
    app.post("/api/event", (response, request) => {
      const read = headers.map((name) => request.getHeader(name))
      response.onAborted(() => undefined)
      bodyOf(response, (body) => {
        const isRead = body.length > 0 && read[0] !== ""
        response.writeStatus(isRead ? "202 Accepted" : "400 Bad Request")
        response.writeHeader("Access-Control-Allow-Origin", "*").end()
      })
    })
  })

if (process.argv[1] === import.meta.filename) serve()
