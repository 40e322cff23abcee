import { type AddressInfo, connect, createServer, type Socket } from "node:net"

/** A proxy that cuts each connection after so many bytes from the client, and counts what it has handed on. */
export interface CutProxy {
  readonly url: string
  /** bytes of clients that the server got */
  readonly forwarded: () => number
  readonly cuts: () => number
  readonly connections: () => number
  readonly close: () => Promise<void>
}

/** @param afterBytes of a connection's bytes, chosen anew for each; Infinity: it is not cut */
export const startCutProxy = async (serverUrl: string, afterBytes: () => number): Promise<CutProxy> => {
  const { hostname, port } = new URL(serverUrl)
  const sockets = new Set<Socket>()
  const counts = { forwarded: 0, cuts: 0, connections: 0 }
  const server = createServer((inside) => {
    const outside = connect({ host: hostname, port: Number(port) })
    counts.connections++
    let left = afterBytes()
    for (const socket of [inside, outside]) {
      sockets.add(socket)
      socket.on("error", () => socket.destroy())
      socket.on("close", () => sockets.delete(socket))
    }
    outside.on("data", (chunk) => inside.write(chunk))
    outside.on("close", () => inside.destroy())
    inside.on("close", () => outside.end())
    outside.on("drain", () => inside.resume())
    inside.on("data", (chunk: Buffer) => {
      const part = chunk.subarray(0, left)
      left -= part.length
      counts.forwarded += part.length
      if (!outside.write(part)) inside.pause()
      if (left > 0) return
      counts.cuts++
      inside.removeAllListeners("data").resetAndDestroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port: own } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${own}`,
    forwarded: () => counts.forwarded,
    cuts: () => counts.cuts,
    connections: () => counts.connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}
