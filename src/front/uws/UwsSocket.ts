import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
import type { UwsSocketContext, UwsWebSocket } from "./Addon.ts"
import type { Exchange } from "./Exchange.ts"
import type { FrontLimits } from "../FrontOptions.ts"

type Message = Uint8Array | string

/** RFC 6455 7.4.1, and 1013 "try again later" of its registry. */
const goingAway = 1001
const tooMuchUnread = 1013
const abnormal = 1006
const faulty = 1011

const closeError = (code: number, reason?: string): Socket.SocketError =>
  new Socket.SocketError({
    reason: new Socket.SocketCloseError(
      reason === undefined || reason === "" ? { code } : { code, closeReason: reason }
    )
  })

const openError = (message: string): Socket.SocketError =>
  new Socket.SocketError({
    reason: new Socket.SocketOpenError({ kind: "Unknown", cause: new Error(message) })
  })

/** The parts of the request that the handshake needs, copied while they could be read. */
interface Handshake {
  readonly key: string
  readonly protocol: string
  readonly extensions: string
  readonly context: UwsSocketContext
}

/**
 * A WebSocket of uWebSockets.js as an Effect Socket. The handshake is answered when the reader is acquired; until then
 * the handler may still refuse with an ordinary answer. Writes wait while the client is behind.
 */
export class Upgrade {
  isUpgraded = false
  readonly socket: Socket.Socket
  private readonly exchange: Exchange
  private readonly handshake: Handshake
  private readonly limits: FrontLimits
  private native: UwsWebSocket | undefined
  private messages: Array<Message> = []
  private unreadBytes = 0
  private error: Socket.SocketError | undefined
  private wakeReader: (() => void) | undefined
  private readonly wakeWriters = new Set<() => void>()

  constructor(exchange: Exchange, handshake: Handshake, limits: FrontLimits) {
    this.exchange = exchange
    this.handshake = handshake
    this.limits = limits
    this.socket = Socket.make({
      reader: Effect.andThen(
        this.open,
        Effect.succeed({ pull: this.pull, upgrade: Socket.SocketUpgradeError.unsupported })
      ),
      writer: Effect.succeed({
        write: (chunk) => this.write(chunk),
        writeAll: (chunks) => Effect.forEach(chunks, (chunk) => this.write(chunk), { discard: true })
      })
    })
  }

  opened(native: UwsWebSocket): void {
    this.native = native
    this.wakeAll()
  }

  received(message: ArrayBuffer, isBinary: boolean): void {
    // The buffer is detached when this returns.
    this.messages.push(isBinary ? new Uint8Array(message.slice(0)) : Buffer.from(message).toString("utf8"))
    this.unreadBytes += message.byteLength
    // A WebSocket cannot be paused here, so a handler that does not keep up would fill the memory.
    if (this.unreadBytes > this.limits.webSocketMaxUnreadBytes)
      this.native?.end(tooMuchUnread, "Too much unread")
    this.wakeReader?.()
  }

  drained(): void {
    this.wakeAll()
  }

  closed(code: number, reason: string): void {
    this.native = undefined
    this.error ??= closeError(code, reason)
    if (code === abnormal) this.exchange.abandon()
    this.wakeAll()
  }

  private readonly open: Effect.Effect<void, Socket.SocketError, Scope.Scope> = Effect.suspend(() => {
    if (this.isUpgraded) return Effect.fail(openError("The socket has been opened before"))
    if (this.exchange.isGone) return Effect.fail(openError("The connection closed before the upgrade"))
    this.isUpgraded = true
    const { key, protocol, extensions, context } = this.handshake
    this.exchange.upgrade((response) =>
      response.upgrade({ upgrade: this }, key, protocol, extensions, context)
    )
    return Effect.flatMap(Effect.scope, (scope) =>
      Scope.addFinalizerExit(scope, (exit) => Effect.sync(() => this.release(exit)))
    )
  })

  private readonly pull: Socket.Reader["pull"] = Effect.callback((resume) => {
    const attempt = () => {
      // Before resuming, which may run the reader on to its next pull.
      this.wakeReader = undefined
      const [first, ...rest] = this.messages
      if (first !== undefined) {
        this.messages = []
        this.unreadBytes = 0
        resume(Effect.succeed([first, ...rest]))
      } else if (this.error !== undefined) resume(Effect.fail(this.error))
      else this.wakeReader = attempt
    }
    attempt()
    return Effect.sync(() => {
      this.wakeReader = undefined
    })
  })

  private write(chunk: Message | Socket.CloseEvent): Effect.Effect<void, Socket.SocketError> {
    return Effect.suspend(() => {
      const { native } = this
      if (this.error !== undefined) return Effect.fail(this.error)
      if (native === undefined) return Effect.andThen(this.waitForChange, this.write(chunk))
      if (Socket.isCloseEvent(chunk)) {
        native.end(chunk.code, chunk.reason)
        return Effect.void
      }
      if (native.getBufferedAmount() > this.limits.webSocketHighWaterBytes) {
        return Effect.andThen(this.waitForChange, this.write(chunk))
      }
      native.send(chunk, typeof chunk !== "string")
      return Effect.void
    })
  }

  /** Until the socket is open, has drained, or is closed. */
  private readonly waitForChange: Effect.Effect<void> = Effect.callback((resume) => {
    const wake = () => resume(Effect.void)
    this.wakeWriters.add(wake)
    return Effect.sync(() => void this.wakeWriters.delete(wake))
  })

  private wakeAll(): void {
    const writers = Array.from(this.wakeWriters)
    this.wakeWriters.clear()
    for (const wake of writers) wake()
    this.wakeReader?.()
  }

  private release(exit: Exit.Exit<unknown, unknown>): void {
    this.error ??= closeError(abnormal)
    const { native } = this
    this.native = undefined
    if (native !== undefined) {
      native.end(Exit.isSuccess(exit) ? 1000 : Cause.hasInterruptsOnly(exit.cause) ? goingAway : faulty)
    }
    this.wakeAll()
  }
}
