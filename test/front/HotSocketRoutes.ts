import type { HotSocket, HotSocketListener, HotSocketRoute } from "#src/front/HotSocket.ts"

export const maxFrameBytes = 64 * 1024

export const deaf: HotSocketListener = {
  received: () => undefined,
  drained: () => undefined,
  closed: () => undefined
}

/** A route at /echo that returns every message; `parts` replaces its parts. */
export const echoing = (parts: Partial<HotSocketRoute> = {}): HotSocketRoute => ({
  path: "/echo",
  headers: [],
  maxFrameBytes,
  upgrade: (_, client) =>
    client.accept((socket) => ({
      ...deaf,
      received: (message) =>
        void socket.send(typeof message === "string" ? message : `bytes ${Array.from(message).join(" ")}`)
    })),
  drain: () => undefined,
  ...parts
})

/** A socket of a route for the test to use, and its messages. */
export interface Held {
  readonly socket: HotSocket
  readonly received: Array<string | Uint8Array>
  readonly closed: Promise<number>
  drained: () => void
}

export const holding = (opened: (held: Held) => void, parts: Partial<HotSocketRoute> = {}): HotSocketRoute =>
  echoing({
    upgrade: (_, client) =>
      client.accept((socket) => {
        const end = Promise.withResolvers<number>()
        const held: Held = { socket, received: [], closed: end.promise, drained: () => undefined }
        opened(held)
        return {
          received: (message) => void held.received.push(message),
          drained: () => held.drained(),
          closed: end.resolve
        }
      }),
    ...parts
  })
