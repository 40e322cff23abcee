import * as Effect from "effect/Effect"

/** A hot socket, or on Node also a handshake, until its connection is gone. */
export interface OpenSocket {
  /** ends it with a close frame */
  close(code: number, reason: string): void
  /** the end of the connection, at once */
  drop(): void
}

/** RFC 6455's registry: "service restart". */
const restart = 1012

/** The hot sockets of a front. */
export class OpenSockets {
  private readonly sockets = new Set<OpenSocket>()
  private emptied: (() => void) | undefined

  add(socket: OpenSocket): void {
    this.sockets.add(socket)
  }

  remove(socket: OpenSocket): void {
    if (this.sockets.delete(socket) && this.sockets.size === 0) this.emptied?.()
  }

  /** Once none is open. */
  readonly whenEmpty: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.sockets.size === 0) return resume(Effect.void)
    this.emptied = () => resume(Effect.void)
    return Effect.sync(() => {
      this.emptied = undefined
    })
  })

  closeAll(): void {
    for (const socket of this.sockets) socket.close(restart, "The server restarts")
  }

  dropAll(): void {
    for (const socket of this.sockets) socket.drop()
  }
}
