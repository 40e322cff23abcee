import { connect, createServer, type AddressInfo, type Socket } from "node:net"

/** A wire to a real store that a test can cut and mend: like a network partition or a stopped store. */
export interface TcpProxy {
  readonly port: number
  /**
   * `refuse`: connections are cut and new ones refused. `stall`: they stay open and nothing passes. `mute`: requests to
   * the store arrive, and its answers do not, until the next `breakWire`
   */
  readonly breakWire: (way: "refuse" | "stall" | "mute") => void
  readonly mend: () => void
  /** The connections that are open now are lost, and say so to nobody: requests arrive, and no answer comes. */
  readonly lose: () => void
  readonly close: () => Promise<void>
}

export const startProxy = async (target: {
  readonly host: string
  readonly port: number
}): Promise<TcpProxy> => {
  const pairs = new Set<readonly [Socket, Socket]>()
  const lost = new Set<readonly [Socket, Socket]>()
  let way: "open" | "refuse" | "stall" | "mute" = "open"

  const server = createServer((inside) => {
    if (way === "refuse") return void inside.resetAndDestroy()
    const outside = connect(target)
    const pair = [inside, outside] as const
    pairs.add(pair)
    const drop = (): void => {
      pairs.delete(pair)
      lost.delete(pair)
      inside.destroy()
      outside.destroy()
    }
    for (const [from, to] of [pair, [outside, inside] as const]) {
      from.on("data", (chunk) => {
        if (!to.write(chunk)) from.pause()
      })
      to.on("drain", () => {
        if (way === "open") from.resume()
      })
      // Either end going away, however it goes, ends the other.
      from.on("error", drop)
      from.on("close", drop)
      if (way === "stall" || (way === "mute" && from === outside)) from.pause()
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject)
    server.listen(0, "127.0.0.1", resolve)
  })

  return {
    port: (server.address() as AddressInfo).port,
    breakWire: (how) => {
      way = how
      for (const [inside, outside] of pairs) {
        if (how === "refuse") {
          inside.resetAndDestroy()
          outside.destroy()
        } else {
          if (how === "stall") inside.pause()
          outside.pause()
        }
      }
    },
    mend: () => {
      way = "open"
      for (const pair of pairs) for (const socket of pair) socket.resume()
    },
    lose: () => {
      for (const pair of pairs) {
        lost.add(pair)
        pairs.delete(pair)
        pair[1].pause()
      }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const pair of [...pairs, ...lost]) for (const socket of pair) socket.destroy()
      })
  }
}
