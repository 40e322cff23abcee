import type { UwsRequest, UwsResponse } from "./Addon.ts"
import type { FrontState } from "./FrontState.ts"
import type { HotContext } from "../HotAnswer.ts"
import type { Ending } from "../HotExchange.ts"
import type { HotHead } from "./HotHead.ts"
import type { HotRoute } from "../HotRoute.ts"
import { RequestBody } from "./RequestBody.ts"
import { UploadRate } from "./UploadRate.ts"
import { UwsExchange } from "./UwsExchange.ts"

const noBytes = new Uint8Array(0)

/** One request of a hot route: its body is held until it is whole. */
export class UwsHotExchange extends UwsExchange<HotRoute> {
  private readonly values: ReadonlyArray<string>
  private held: Array<Buffer> | undefined
  private heldBytes = 0
  private rate: UploadRate | undefined
  private refused: RequestBody | undefined

  constructor(
    route: HotRoute,
    response: UwsResponse,
    request: UwsRequest,
    head: Readonly<HotHead>,
    context: HotContext,
    state: FrontState
  ) {
    super(route, response, request, head, context, state)
    this.values = head.values
  }

  /** Takes the body, then calls the handler. */
  begin(): void {
    this.state.inFlight++
    this.response.onAborted(() => this.abort())
    this.response.onData((chunk, isLast) => this.receive(chunk, isLast))
    if (this.declaredBytes > this.route.maxBodyBytes)
      this.refuse((ending) => this.fail(this.failures.bodyTooLarge, ending))
  }

  /** As `begin`, for a handshake: it has no body, and may be made a WebSocket of before this returns. */
  beginHandshake(): void {
    this.state.inFlight++
    this.response.onAborted(() => this.abort())
    this.isCorked = true
    this.handle(noBytes)
    this.isCorked = false
  }

  /** From here on the socket belongs to a WebSocket. */
  upgrade(handshake: (response: UwsResponse) => void): void {
    if (this.aborted || this.isAnswered) return
    this.isAnswered = true
    if (this.isCorked) handshake(this.response)
    else this.state.late.upgrade(this.response, handshake)
    this.state.finished()
  }

  header(name: string): string {
    return this.values[this.route.headers.indexOf(name)] ?? ""
  }

  private receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.refused !== undefined) return this.refused.receive(chunk, isLast)
    if (this.isAnswered) return
    this.isCorked = true
    if (isLast && this.held === undefined) {
      if (chunk.byteLength > this.route.maxBodyBytes) this.fail(this.failures.bodyTooLarge, "keep")
      else this.handle(new Uint8Array(chunk))
    } else this.hold(chunk, isLast)
    this.isCorked = false
  }

  private hold(chunk: ArrayBuffer, isLast: boolean): void {
    this.heldBytes += chunk.byteLength
    if (this.heldBytes > this.route.maxBodyBytes) {
      this.drop()
      if (isLast) this.fail(this.failures.bodyTooLarge, "keep")
      else this.refuse((ending) => this.fail(this.failures.bodyTooLarge, ending))
      return
    }
    const isTaken = this.takes(chunk.byteLength)
    if (isTaken === undefined) return
    if (!isTaken) {
      this.drop()
      const busy = (ending: Ending): void => this.fail(this.failures.overloaded, ending)
      return isLast ? busy("keep") : this.refuse(busy)
    }
    this.held ??= []
    if (isLast) this.rate?.stop()
    else {
      const { minHotUploadBytesPerSecond } = this.state.limits
      this.rate ??= new UploadRate(this.response, this.state, minHotUploadBytesPerSecond, () =>
        this.tooSlow()
      )
      this.rate.count(chunk.byteLength)
    }
    // The chunk is detached when this returns.
    if (chunk.byteLength > 0) this.held.push(Buffer.from(Buffer.from(chunk)))
    if (!isLast) return
    const body = this.held.length === 0 ? noBytes : Buffer.concat(this.held)
    this.drop()
    this.handle(body)
  }

  protected override drop(): void {
    this.held = []
    this.rate?.stop()
    this.release()
  }

  protected override call(body: Uint8Array): void {
    this.route.handle(this, body, this)
  }

  protected override refuse(answer: (ending: Ending) => void): void {
    const declared = this.declaredBytes > 0 ? this.declaredBytes - this.heldBytes : undefined
    this.refused = new RequestBody(this.response, declared, this.state)
    this.refused.discard((outcome) => answer(outcome === "Complete" ? "keep" : "close"))
  }

  protected override get isRefused(): boolean {
    return this.refused !== undefined
  }

  protected override leaveBody(): void {
    this.refused?.detach()
  }

  protected override abortBody(): void {
    this.refused?.abort()
  }
}
