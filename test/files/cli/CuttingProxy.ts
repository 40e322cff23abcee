import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** A wire to the server that is cut, each connection after some bytes. */
export interface CuttingProxy {
  readonly url: string
  /** bytes that clients sent, over all connections */
  readonly sentBytes: () => number
  /** bytes that clients got */
  readonly gotBytes: () => number
  readonly connections: () => number
}

/**
 * @param bytesOf how many bytes the nth connection carries, both ways together, until it is over
 * @param end what becomes of it then: `stall` leaves it open, and nothing passes
 * @param unanswered the first request that begins so gets to the server, and its answer is lost
 */
export const cuttingProxy = (
  port: number,
  bytesOf: (connection: number) => number,
  end: "cut" | "stall" = "cut",
  unanswered?: string
): Effect.Effect<CuttingProxy, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(port, bytesOf, end, unanswered)),
      ({ close }) => Effect.promise(close)
    ),
    ({ proxy }) => proxy
  )

const start = async (
  port: number,
  bytesOf: (connection: number) => number,
  end: "cut" | "stall",
  unanswered: string | undefined
) => {
  const sockets = new Set<Socket>()
  let connections = 0
  let isLost = unanswered === undefined
  const bytes = { sent: 0, got: 0 }
  const server = createServer((inside) => {
    let left = bytesOf(connections++)
    let isMute = false
    const outside = connect({ port, host: "127.0.0.1" })
    const cut = (): void => {
      inside.resetAndDestroy()
      outside.destroy()
    }
    const pass = (from: Socket, to: Socket, way: keyof typeof bytes): void => {
      sockets.add(from)
      from.on("data", (piece: Buffer) => {
        if (isMute && from === outside) return cut()
        if (!isLost && from === inside && piece.toString("latin1").startsWith(unanswered ?? ""))
          isLost = isMute = true
        const some = piece.subarray(0, left)
        left -= some.length
        bytes[way] += some.length
        if (left > 0) return void (to.write(some) || from.pause())
        if (end === "cut") return void to.write(some, cut)
        to.write(some)
        from.pause()
      })
      to.on("drain", () => left > 0 && from.resume())
      from.on("error", cut)
      from.on("close", cut)
    }
    pass(inside, outside, "sent")
    pass(outside, inside, "got")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const proxy: CuttingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sentBytes: () => bytes.sent,
    gotBytes: () => bytes.got,
    connections: () => connections
  }
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  return { proxy, close }
}
