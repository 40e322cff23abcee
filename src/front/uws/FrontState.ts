import type { ClientAddress } from "../ClientAddress.ts"
import type { FrontLimits } from "../FrontOptions.ts"
import { BodyTurns } from "./BodyTurns.ts"
import type { LateUpgrades } from "./LateUpgrades.ts"

/** A request whose client is being waited for: it may be sending its body or taking its answer. */
export interface Watched {
  /** called about every second; drops the connection when the client is too slow */
  check(nowMillis: number): void
}

/** The shared state of all requests of one uWebSockets.js front. */
export class FrontState {
  readonly limits: FrontLimits
  readonly clientAddress: ClientAddress | undefined
  readonly late: LateUpgrades
  readonly turns = new BodyTurns()
  /** once true, every answer closes its connection */
  isDraining = false
  /** HTTP requests that have not been answered; WebSockets are not counted */
  inFlight = 0
  connections = 0
  private readonly watched = new Set<Watched>()
  private timer: ReturnType<typeof setInterval> | undefined
  private idle: (() => void) | undefined

  constructor(limits: FrontLimits, clientAddress: ClientAddress | undefined, late: LateUpgrades) {
    this.late = late
    this.limits = limits
    this.clientAddress = clientAddress
  }

  finished(): void {
    this.inFlight--
    if (this.inFlight === 0 && this.idle !== undefined) this.idle()
  }

  /** Calls back once nothing is in flight; undone by the returned function. */
  whenIdle(callback: () => void): () => void {
    if (this.inFlight === 0) callback()
    else this.idle = callback
    return () => {
      this.idle = undefined
    }
  }

  /** One timer for all slow clients, and none while there are none. */
  watch(request: Watched): void {
    this.watched.add(request)
    this.timer ??= setInterval(() => this.sweep(), this.sweepMillis())
  }

  unwatch(request: Watched): void {
    this.watched.delete(request)
    if (this.watched.size === 0) this.stop()
  }

  stop(): void {
    clearInterval(this.timer)
    this.timer = undefined
  }

  private sweep(): void {
    const now = performance.now()
    for (const request of this.watched) request.check(now)
  }

  private sweepMillis(): number {
    const { slowUploadWindowMillis, stalledReaderMillis, webSocketLingerMillis } = this.limits
    return Math.min(1000, stalledReaderMillis / 4, slowUploadWindowMillis / 4, webSocketLingerMillis / 4)
  }
}
