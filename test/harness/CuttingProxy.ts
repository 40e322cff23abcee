import { type AddressInfo, connect, createServer } from "node:net"
import { Effect } from "effect"

/** Cuts every connection to the server behind so many bytes of answers, until it has cut often enough. */
export const cuttingProxy = (port: number, cuts: number, bytesEach: () => number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const state = { cuts: 0, port: 0, close: () => undefined as void }
      const server = createServer((inside) => {
        const outside = connect(port, "127.0.0.1")
        let left = state.cuts < cuts ? bytesEach() : Infinity
        outside.on("data", (chunk) => {
          left -= chunk.length
          if (left <= 0) {
            state.cuts++
            inside.write(chunk.subarray(0, chunk.length + left))
            inside.end()
            outside.destroy()
          } else if (!inside.write(chunk)) outside.pause()
        })
        inside.on("drain", () => outside.resume())
        inside.on("data", (chunk) => outside.write(chunk))
        for (const socket of [inside, outside])
          socket
            .on("error", () => socket.destroy())
            .on("close", () => {
              inside.destroySoon()
              outside.destroy()
            })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      state.port = (server.address() as AddressInfo).port
      state.close = () => void server.close()
      return state
    }),
    ({ close }) => Effect.sync(close)
  )
