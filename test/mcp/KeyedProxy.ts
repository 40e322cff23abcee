import { createServer, request } from "node:http"
import { Effect } from "effect"

/** A proxy on a free port of localhost that adds a key to every request: for programs that can send none. */
export interface KeyedProxy {
  readonly url: string
  /** says where to pass requests on, once the server has started */
  readonly to: (port: number, key: string) => void
}

export const keyedProxy = Effect.acquireRelease(
  Effect.promise(async () => {
    let port = 0
    let authorization = ""
    const server = createServer((asked, answer) => {
      const options = {
        port,
        method: asked.method,
        path: asked.url,
        headers: { ...asked.headers, authorization }
      }
      const passed = request({ host: "127.0.0.1", ...options }, (answered) => {
        answer.writeHead(answered.statusCode ?? 502, answered.headers)
        answered.pipe(answer)
      })
      passed.on("error", () => answer.destroy())
      answer.on("close", () => passed.destroy())
      asked.pipe(passed)
    })
    await new Promise<void>((listening) => server.listen(0, "localhost", listening))
    const address = server.address()
    const own = typeof address === "object" && address !== null ? address.port : 0
    const to = (toPort: number, key: string): void => {
      port = toPort
      authorization = `Bearer ${key}`
    }
    return { server, proxy: { url: `http://localhost:${own}`, to } satisfies KeyedProxy }
  }),
  ({ server }) =>
    Effect.promise(async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    })
).pipe(Effect.map(({ proxy }) => proxy))
