import type { UwsResponse } from "./Addon.ts"
import type { FrontState, Watched } from "./FrontState.ts"
import { setTimerBack } from "./NativeTimer.ts"

/**
 * Drops a connection whose body comes too slowly, by the front's limits. uWebSockets.js would drop anything below
 * 16 KB/s, which a phone can be; its timer is set back as long as ours is content.
 */
export class UploadRate implements Watched {
  private readonly response: UwsResponse
  private readonly state: FrontState
  private windowStart = performance.now()
  private windowBytes = 0
  private isHeldBack = false

  constructor(response: UwsResponse, state: FrontState) {
    this.response = response
    this.state = state
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
    const { minUploadBytesPerSecond, slowUploadWindowMillis } = this.state.limits
    const elapsed = nowMillis - this.windowStart
    if (this.isHeldBack || elapsed >= slowUploadWindowMillis) {
      if (!this.isHeldBack && this.windowBytes < (minUploadBytesPerSecond * elapsed) / 1000) {
        this.response.close()
        return
      }
      this.windowStart = nowMillis
      this.windowBytes = 0
    }
    if (!this.isHeldBack) setTimerBack(this.response)
  }
}
