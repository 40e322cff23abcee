import * as Context from "effect/Context"
import type { HotRequest } from "./HotRoute.ts"

/**
 * A WebSocket endpoint that is served beside the Effect pipeline: no fiber, no timer and no closure for each socket, so
 * that idle ones cost little more than the addon's own. The front sends no pings: routes ask for signs of life.
 */
export interface HotSocketRoute {
  /** matched exactly and case-sensitively, as a hot route's. Other requests than handshakes (RFC 6455 4.2.1) get 426 */
  readonly path: string
  /** header names (lower-case) copied before `upgrade` runs */
  readonly headers: ReadonlyArray<string>
  /** of one message, text as UTF-8. A longer one closes the socket with 1009; one above the double just drops it */
  readonly maxFrameBytes: number
  /** Answers with exactly one of `accept` and `refuse`, at once or later. A throw is answered 500 */
  upgrade(request: HotRequest, handshake: HotHandshake): void
  /**
   * The front begins to drain: say goodbye to the sockets of this route. Those that are open at the deadline are closed
   * with 1012. A handshake may still come, or be under way; it is the route's to refuse.
   */
  drain(): void
}

/** A client that waits for the answer to its handshake. */
export interface HotHandshake {
  /** the client is gone: nothing can be answered any more */
  readonly aborted: boolean
  /**
   * Answers 101. `open` is called with the socket at once and gives its listener. After an abort or another answer a
   * no-op.
   */
  accept(open: (socket: HotSocket) => HotSocketListener): void
  /** An ordinary answer instead, as `HotReply.send` */
  refuse(status: number, headers: ReadonlyArray<readonly [string, string]>, body: string): void
  /** Called once, when the client goes away before the answer; at once if it has gone already. */
  onAbort(listener: () => void): void
}

/** The listener of a socket. A throw in one of these is reported, and ends this socket (1011). */
export interface HotSocketListener {
  /** A message, whole. Bytes are only valid until this returns */
  received(message: string | Uint8Array): void
  /** Everything has left for the kernel after a `send` that answered false. It may be called without one, too */
  drained(): void
  /**
   * Called once, and nothing after it. `code`: the client's (1005 where it gave none), the server's own (then this runs
   * within `close`), or 1006 where the connection was lost or `terminate` was called.
   */
  closed(code: number): void
}

/** An open WebSocket. Once it is closed every call is a no-op, and nothing is buffered. */
export interface HotSocket {
  /**
   * Answers false where bytes wait for the client; they are kept, and `drained` tells when they have left. Above
   * `webSocketMaxBufferedBytes` the socket is dropped (`closed` with 1006, within this call): nothing is left out.
   */
  send(text: string): boolean
  /** bytes that the kernel has not taken */
  readonly bufferedBytes: number
  /** `reason`: at most 123 bytes as UTF-8 (RFC 6455 5.5). Waiting messages and the close frame have some seconds */
  close(code: number, reason: string): void
  /** Ends the connection without another byte */
  terminate(): void
}

/** Every hot socket route of this process, collected by the layers and read by the front when it starts to serve. */
export class HotSockets extends Context.Service<HotSockets, ReadonlyArray<HotSocketRoute>>()(
  "signalbox/infra/HotSockets"
) {}
