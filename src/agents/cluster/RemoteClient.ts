import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { HotSocketListener } from "#src/front/HotSocket.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"
import type { SendQueue } from "./SendQueue.ts"
import type { ToClient } from "./RelayRpcs.ts"

const nobody: HotSocketListener = { received: () => {}, drained: () => {}, closed: () => {} }

/**
 * A client of a session here whose socket is at another machine. Frames count as buffered until its own system has
 * taken them, as that machine reports: a client that is slow there slows its session as one that is slow here does.
 */
export class RemoteClient implements FrameSink {
  listener: HotSocketListener = nobody
  private sentBytes = 0
  private takenBytes = 0
  private isOpen = true
  private readonly relay: number
  private readonly outbox: SendQueue<ToClient>
  private readonly waitingBytes: number
  private readonly forget: () => void

  /** @param waitingBytes the most that may wait for the other machine, for all of its clients */
  constructor(relay: number, outbox: SendQueue<ToClient>, waitingBytes: number, forget: () => void) {
    this.relay = relay
    this.outbox = outbox
    this.waitingBytes = waitingBytes
    this.forget = forget
  }

  get bufferedBytes(): number {
    return this.isOpen ? this.sentBytes - this.takenBytes : 0
  }

  send(text: string): boolean {
    if (!this.isOpen) return true
    if (this.outbox.bytes > this.waitingBytes) {
      this.close(closeCodes.slow, "slow")
      return true
    }
    const bytes = Buffer.byteLength(text)
    this.sentBytes += bytes
    this.outbox.add({ _tag: "Frame", relay: this.relay, text }, bytes)
    return false
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return
    this.outbox.add({ _tag: "Close", relay: this.relay, code, reason }, reason.length)
    this.closed(code)
  }

  received(text: string | null): void {
    if (this.isOpen) this.listener.received(text ?? new Uint8Array())
  }

  /** `bytes` of all that was sent no longer wait. */
  taken(bytes: number): void {
    const before = this.bufferedBytes
    this.takenBytes = Math.min(this.sentBytes, Math.max(this.takenBytes, bytes))
    if (before > 0 && this.bufferedBytes === 0) this.listener.drained()
  }

  /** The connection is over, from either side. */
  closed(code: number): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.forget()
    this.listener.closed(code)
  }
}
