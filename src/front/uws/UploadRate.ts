import type { UwsResponse } from "./Addon.ts"
import type { FrontState, Watched } from "./FrontState.ts"
import { setTimerBack } from "./NativeTimer.ts"

/**
 * Ends a request whose body comes too slowly, by the front's limits. uWebSockets.js would drop anything below
 * 16 KB/s, which a phone can be; its timer is set back as long as ours is content.
 */
export class UploadRate implements Watched {
  private readonly response: UwsResponse
  private readonly state: FrontState
  private readonly minBytesPerSecond: number
  private readonly onSlow: () => void
  private windowStart = performance.now()
  private windowBytes = 0
  private isHeldBack = false

  /** `onSlow` ends the request; it is called once at most */
  constructor(response: UwsResponse, state: FrontState, minBytesPerSecond: number, onSlow: () => void) {
    this.response = response
    this.state = state
    this.minBytesPerSecond = minBytesPerSecond
    this.onSlow = onSlow
    state.watch(this)
  }

  count(bytes: number): void {
    this.windowBytes += bytes
  }

  /** The client is made to wait: that is no fault of its own. */
  holdBack(isHeldBack: boolean): void {
    this.isHeldBack = isHeldBack
  }

  stop(): void {
    this.state.unwatch(this)
  }

  check(nowMillis: number): void {
    const { slowUploadWindowMillis } = this.state.limits
    const elapsed = nowMillis - this.windowStart
    if (this.isHeldBack || elapsed >= slowUploadWindowMillis) {
      if (!this.isHeldBack && this.windowBytes < (this.minBytesPerSecond * elapsed) / 1000) {
        this.stop()
        return this.onSlow()
      }
      this.windowStart = nowMillis
      this.windowBytes = 0
    }
    if (!this.isHeldBack) setTimerBack(this.response)
  }
}
