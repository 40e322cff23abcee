import { assert, describe, it } from "@effect/vitest"
import type { HotSocketRoute } from "#src/front/HotSocket.ts"
import { echoing, type Held, holding } from "./HotSocketRoutes.ts"
import { RawClient, statusOf } from "./RawClient.ts"
import { handshake, SocketClient } from "./SocketClient.ts"
import { engines, withFront } from "./TestFront.ts"

const mib = 1024 * 1024
/** Far more than the kernel holds for a client that reads nothing. */
const message = "x".repeat(mib)
const messages = 24
/** More than the kernel takes of one send. */
const large = "x".repeat(8 * mib)
/** A frame of 1 MiB from the server (RFC 6455 5.2). */
const frameBytes = 10 + mib

const never = 600_000
/** The longest: a ping in time would push what is stuck. */
const webSocketIdleTimeoutSeconds = 960

describe.each(engines)("hot sockets whose client is slow on %s", (engine) => {
  /** A socket whose client has stopped reading, with 24 MiB sent to it. */
  const behind = async (
    limits: Parameters<typeof withFront>[0]["limits"],
    use: (held: Held, client: RawClient, headBytes: number, stop: () => Promise<void>) => Promise<void>
  ): Promise<void> => {
    const opened = Promise.withResolvers<Held>()
    await withFront({ engine, sockets: [holding(opened.resolve)], limits }, async ({ port, stop }) => {
      const client = await RawClient.open(port)
      await client.send(handshake("/echo"))
      await client.until((heard) => heard.endsWith("\r\n\r\n"))
      client.socket.pause()
      await use(await opened.promise, client, client.receivedBytes, stop)
      client.destroy()
    })
  }

  it("say so, keep every byte, and tell when all of it has left", () =>
    behind({ webSocketMaxBufferedBytes: 2 * messages * mib }, async (held, client, head) => {
      const { socket } = held
      const waiting: Array<number> = []
      held.drained = () => void waiting.push(socket.bufferedBytes)
      const taken = Array.from({ length: messages }, () => socket.send(message))
      assert.isFalse(taken.at(-1))
      assert.isAbove(socket.bufferedBytes, mib)
      assert.isAtMost(socket.bufferedBytes, messages * frameBytes)
      client.socket.resume()
      await client.untilBytes(head + messages * frameBytes)
      while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
      assert.deepStrictEqual(waiting, [0])
      assert.isTrue(socket.send("more"))
    }))

  it("deliver what is sent when all has left, though the kernel takes a part of it alone", () =>
    behind(
      { webSocketMaxBufferedBytes: 2 * messages * mib, webSocketIdleTimeoutSeconds },
      async (held, client, head) => {
        const { socket } = held
        let left = 4
        held.drained = () => {
          if (left-- > 0) socket.send(large)
        }
        socket.send(large)
        client.socket.resume()
        await client.untilBytes(head + 5 * (10 + large.length))
      }
    ))

  it("are dropped by a send when more than the bound waits, within the call", () =>
    behind({ webSocketMaxBufferedBytes: 2 * mib }, async ({ socket, closed }, client, head) => {
      for (let sent = 0; sent < messages; sent++) socket.send(message)
      assert.strictEqual(await closed, 1006)
      assert.strictEqual(socket.bufferedBytes, 0)
      client.socket.resume()
      await client.closed()
      assert.isBelow(client.receivedBytes, head + messages * frameBytes)
    }))

  it("deliver what waits before the close frame, and tell the listener at once", () =>
    behind({ webSocketMaxBufferedBytes: 2 * messages * mib }, async ({ socket, closed }, client, head) => {
      for (let sent = 0; sent < messages; sent++) socket.send(message)
      socket.close(4013, "slow")
      assert.strictEqual(await closed, 4013)
      assert.strictEqual(socket.bufferedBytes, 0)
      client.socket.resume()
      const close = Buffer.concat([
        Buffer.from([0x88, 6]),
        Buffer.from([4013 >> 8, 4013 & 255]),
        Buffer.from("slow")
      ])
      const all = await client.untilBytes(head + messages * frameBytes + close.length)
      assert.deepStrictEqual(all.subarray(-close.length), close)
    }))

  it("are let go some seconds after their end, whether their client reads or not", () =>
    behind(
      {
        webSocketMaxBufferedBytes: 2 * messages * mib,
        webSocketLingerMillis: 100,
        drainDeadlineMillis: never
      },
      async ({ socket }, client, head, stop) => {
        for (let sent = 0; sent < messages; sent++) socket.send(message)
        socket.close(4013, "slow")
        // It waits for every connection that is still there.
        await stop()
        client.socket.resume()
        await client.closed()
        assert.isBelow(client.receivedBytes, head + messages * frameBytes)
      }
    ))
})

describe.each(engines)("hot sockets of a front that stops on %s", (engine) => {
  const running = <A>(
    route: HotSocketRoute,
    drainDeadlineMillis: number,
    use: Parameters<typeof withFront<A>>[1]
  ): Promise<A> => withFront({ engine, sockets: [route], limits: { drainDeadlineMillis } }, use)

  it("are said goodbye to by their route, and the front waits for them", () => {
    const sockets: Array<Held> = []
    const route = holding((held) => sockets.push(held), {
      drain: () => sockets.forEach(({ socket }) => socket.close(1012, "moved"))
    })
    return running(route, never, async ({ url, stop }) => {
      const clients = await Promise.all([1, 2].map(() => SocketClient.open(`${url}/echo`)))
      await stop()
      for (const client of clients)
        assert.deepStrictEqual(await client.closed, { code: 1012, reason: "moved" })
    })
  })

  it("are closed with 1012 at the deadline, and their clients hear it", () => {
    const opened = Promise.withResolvers<Held>()
    return running(holding(opened.resolve), 20, async ({ url, stop }) => {
      const client = await SocketClient.open(`${url}/echo`)
      await stop()
      assert.deepStrictEqual(await client.closed, { code: 1012, reason: "The server restarts" })
      assert.strictEqual(await (await opened.promise).closed, 1012)
    })
  })

  it("do not hold it up where a handshake is never answered or a client never closes", () => {
    const asked = Promise.withResolvers<void>()
    const route = echoing({
      upgrade: (request, client) => {
        if (request.query === "silent") asked.resolve()
        else echoing().upgrade(request, client)
      }
    })
    return running(route, 20, async ({ port, stop }) => {
      const silent = await RawClient.open(port)
      await silent.send(handshake("/echo?silent"))
      const rude = await RawClient.open(port)
      await rude.send(handshake("/echo"))
      await rude.until((heard) => statusOf(heard) === 101)
      await asked.promise
      await stop()
      await silent.closed()
      await rude.closed()
    })
  })
})
