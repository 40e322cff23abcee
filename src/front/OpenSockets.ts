import * as Effect from "effect/Effect"
import { attempt, type HotContext } from "./HotAnswer.ts"

/** A hot socket, or on Node also a handshake, until its connection is gone. */
export interface OpenSocket {
  /** ends it with a close frame */
  close(code: number, reason: string): void
  /** the end of the connection, at once */
  drop(): void
}

/** RFC 6455's registry: "service restart". */
const restart = 1012

/** How long clients have to take their close frames once the deadline has passed. */
const farewellMillis = 1_000

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

/** The routes close their sockets; those not `idle` and closed at the deadline are closed, and then dropped. */
export const drain = (
  context: HotContext,
  idle: Effect.Effect<void>,
  deadlineMillis: number
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { open, sockets } = context
    for (const route of sockets) attempt(() => route.drain(), context)
    return Effect.andThen(idle, open.whenEmpty).pipe(
      within(deadlineMillis),
      Effect.andThen(Effect.sync(() => open.closeAll())),
      Effect.andThen(within(farewellMillis)(open.whenEmpty)),
      Effect.andThen(Effect.sync(() => open.dropAll()))
    )
  })

const within =
  (millis: number) =>
  (effect: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.timeoutOrElse(effect, { duration: millis, orElse: () => Effect.void })
