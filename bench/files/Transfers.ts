import { connect, type Socket } from "node:net"

/** Clients of one transfer each, which do no more than count. */

/** A connection that reads into one buffer. */
const open = (port: number, onBytes: (bytes: Buffer) => void): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({
      port,
      host: "127.0.0.1",
      onread: {
        buffer: Buffer.allocUnsafeSlow(1024 * 1024),
        callback: (count, bytes) => {
          onBytes(Buffer.from(bytes.buffer, bytes.byteOffset, count))
          return true
        }
      }
    })
    socket.once("error", reject)
    socket.once("connect", () => resolve(socket))
  })

/** The status of an answer, and its head with what of the body came along. */
interface Answered {
  readonly status: number
  readonly text: string
}

/** One answer: resolves when all bytes of its body have come. */
const answerOf = (): { readonly take: (bytes: Buffer) => void; readonly answered: Promise<Answered> } => {
  const { promise, resolve } = Promise.withResolvers<Answered>()
  let head = ""
  let leftBytes = Number.NaN
  const take = (bytes: Buffer): void => {
    let body = bytes.length
    if (Number.isNaN(leftBytes)) {
      head += bytes.toString("latin1")
      const end = head.indexOf("\r\n\r\n")
      if (end < 0) return
      leftBytes = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      body = head.length - end - 4
    }
    leftBytes -= body
    if (leftBytes <= 0)
      resolve({ status: Number(head.split(" ")[1]), text: head.slice(head.indexOf("\r\n\r\n") + 4) })
  }
  return { take, answered: promise }
}

/** Asks, and resolves once the whole answer has come. */
export const download = async (port: number, request: Uint8Array): Promise<Answered> => {
  const { answered, take } = answerOf()
  const socket = await open(port, take)
  socket.write(request)
  const answer = await answered
  socket.destroy()
  return answer
}

export interface Upload {
  /** everything before the bytes */
  readonly before: string
  readonly after: string
  readonly bytes: number
}

const piece = Buffer.alloc(256 * 1024, 97)

/** Sends so many bytes as fast as they are taken, and resolves with the answer. */
export const upload = async (port: number, { after, before, bytes }: Upload): Promise<Answered> => {
  const { answered, take } = answerOf()
  const socket = await open(port, take)
  socket.write(before)
  for (let sent = 0; sent < bytes; sent += piece.length) {
    if (!socket.write(piece.subarray(0, bytes - sent)))
      await new Promise<void>((resolve) => socket.once("drain", () => resolve()))
  }
  socket.write(after)
  const answer = await answered
  socket.destroy()
  return answer
}

/** Connections that ask and read nothing. */
export const stalledReaders = (
  port: number,
  count: number,
  request: Uint8Array
): Promise<ReadonlyArray<Socket>> =>
  Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect({ port, host: "127.0.0.1" }, () => {
            socket.pause()
            socket.write(request, () => resolve(socket))
          })
          socket.once("error", reject)
        })
    )
  )

/** Connections that send some bytes five times a second, until they are destroyed. */
export const slowWriters = async (
  port: number,
  count: number,
  before: string
): Promise<ReadonlyArray<Socket>> => {
  const sockets = await stalledReaders(port, count, Buffer.from(before))
  const some = Buffer.alloc(1024, 97)
  const timer = setInterval(() => {
    const left = sockets.filter((socket) => !socket.destroyed)
    for (const socket of left) socket.write(some)
    if (left.length === 0) clearInterval(timer)
  }, 200)
  return sockets
}
