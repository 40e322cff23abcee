import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import type { Limits } from "#src/Limits.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"
import { Outbox } from "./Outbox.ts"
import type { ToClient, ToHome } from "./RelayRpcs.ts"

/** This machine's side of a link: its clients whose sessions live on one other machine. */
export class RelayLink {
  readonly outbox: Outbox<ToHome>
  private readonly clients = new Map<number, RelayedClient>()
  private readonly limits: Limits
  private relays = 0
  private isOver = false

  constructor(limits: Limits) {
    this.limits = limits
    this.outbox = new Outbox(limits.clusterBatchBytes)
  }

  /** Serves a client of this machine at the other one. */
  serve(sessionId: string, key: Principal, sink: FrameSink): HotSocketListener {
    const relay = ++this.relays
    const client = new RelayedClient(relay, sink, this.outbox, this.limits.clusterWaitingBytes, () =>
      this.clients.delete(relay)
    )
    if (this.isOver) {
      client.close(closeCodes.restart, "moved")
      return client
    }
    this.clients.set(relay, client)
    this.outbox.add({ _tag: "Open", relay, sessionId, key }, 256)
    return client
  }

  /** Frames from the home, in order. */
  apply(items: ReadonlyArray<ToClient>): void {
    const touched = new Set<RelayedClient>()
    for (const item of items) {
      if (item._tag === "Linked") continue
      const client = this.clients.get(item.relay)
      if (client === undefined) continue
      if (item._tag === "Close") client.close(item.code, item.reason)
      else {
        client.deliver(item.text)
        touched.add(client)
      }
    }
    for (const client of touched) client.report()
  }

  /** The other machine is gone: its clients ask anew where their sessions are. */
  end(): void {
    this.isOver = true
    for (const client of this.clients.values()) client.close(closeCodes.restart, "moved")
  }
}

class RelayedClient implements HotSocketListener {
  private readonly relay: number
  private readonly sink: FrameSink
  private readonly outbox: Outbox<ToHome>
  private readonly waitingBytes: number
  private readonly forget: () => void
  private isOpen = true
  private sentBytes = 0
  private reportedBytes = 0

  constructor(
    relay: number,
    sink: FrameSink,
    outbox: Outbox<ToHome>,
    waitingBytes: number,
    forget: () => void
  ) {
    this.relay = relay
    this.sink = sink
    this.outbox = outbox
    this.waitingBytes = waitingBytes
    this.forget = forget
  }

  deliver(text: string): void {
    this.sentBytes += Buffer.byteLength(text)
    this.sink.send(text)
  }

  /** Tells the home how many bytes the client has taken. */
  report(): void {
    if (!this.isOpen) return
    const bytes = this.sentBytes - Math.min(this.sentBytes, this.sink.bufferedBytes)
    if (bytes <= this.reportedBytes) return
    this.reportedBytes = bytes
    this.outbox.add({ _tag: "Taken", relay: this.relay, bytes }, 16)
  }

  close(code: number, reason: string): void {
    if (!this.leave()) return
    this.sink.close(code, reason)
  }

  received(message: string | Uint8Array): void {
    if (!this.isOpen) return
    // The home takes no more: the client comes back, as after a restart.
    if (this.outbox.bytes > this.waitingBytes) {
      this.closed(closeCodes.restart)
      this.sink.close(closeCodes.restart, "overloaded")
      return
    }
    const text = typeof message === "string" ? message : null
    this.outbox.add({ _tag: "Frame", relay: this.relay, text }, text === null ? 0 : Buffer.byteLength(text))
  }

  drained(): void {
    this.report()
  }

  closed(code: number): void {
    if (this.leave()) this.outbox.add({ _tag: "Closed", relay: this.relay, code }, 16)
  }

  private leave(): boolean {
    const wasOpen = this.isOpen
    this.isOpen = false
    this.forget()
    return wasOpen
  }
}
