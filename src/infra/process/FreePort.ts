import { Effect } from "effect"
import { createServer } from "node:net"

/** Is a loopback port free right now? 0 asks the system for one; undefined when taken. */
export const freePort = (wanted: number): Effect.Effect<number | undefined> =>
  Effect.callback<number | undefined>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(undefined)))
    server.listen({ port: wanted, host: "127.0.0.1", exclusive: true }, () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : undefined
      server.close(() => resume(Effect.succeed(port)))
    })
  })
