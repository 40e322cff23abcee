import type { Ending } from "../HotExchange.ts"
import type { HotRoute } from "../HotRoute.ts"
import { NodeExchange } from "./NodeExchange.ts"

/** One request of a hot route on Node's server; the counterpart of `UwsHotExchange`. */
export class NodeHotExchange extends NodeExchange<HotRoute> {
  private chunks: Array<Buffer> = []
  private receivedBytes = 0
  /** answers in place of the handler, once the rest of the body is out of the way */
  private refusal: ((ending: Ending) => void) | undefined

  /** Takes the body, then calls the handler. */
  begin(): void {
    const { request, response, route } = this
    request.on("data", (chunk: Buffer) => this.receive(chunk))
    request.on("end", () => this.complete())
    response.on("close", () => this.closed())
    this.context.arriving.set(response, {
      minBytesPerSecond: this.context.limits.minHotUploadBytesPerSecond,
      isAwaited: true,
      tooSlow: () => this.tooSlow()
    })
    const declared = Number(this.headerValue("content-length"))
    if (declared > route.maxBodyBytes) this.refuse(this.tooLarge, declared)
  }

  /** As `begin`, for a handshake, which has no body. */
  beginHandshake(): void {
    this.response.on("close", () => this.closed())
    this.complete()
  }

  /** From here on the socket belongs to a WebSocket; false where it cannot any more. */
  upgrade(): boolean {
    if (this.aborted || this.isAnswered) return false
    this.isAnswered = true
    this.response.detachSocket(this.request.socket)
    return true
  }

  header(name: string): string {
    return this.route.headers.includes(name) ? this.headerValue(name) : ""
  }

  private receive(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    if (this.refusal !== undefined) {
      if (this.receivedBytes > this.context.limits.lingerBytes) this.refusal("close")
    } else if (this.receivedBytes > this.route.maxBodyBytes) this.refuse(this.tooLarge)
    else if (!this.isAnswered) this.hold(chunk)
  }

  private hold(chunk: Buffer): void {
    const isTaken = this.takes(chunk.length)
    if (isTaken === true) this.chunks.push(chunk)
    else if (isTaken === false) this.refuse((ending) => this.fail(this.failures.overloaded, ending))
  }

  private complete(): void {
    this.context.arriving.delete(this.response)
    if (this.refusal !== undefined) return this.refusal("keep")
    if (this.isAnswered) return
    const body = Buffer.concat(this.chunks)
    this.drop()
    this.handle(body)
  }

  protected override call(body: Uint8Array): void {
    this.route.handle(this, body, this)
  }

  protected override refuse(answer: (ending: Ending) => void, declaredBytes = 0): void {
    this.refusal = answer
    this.drop()
    const { lingerBytes, lingerMillis } = this.context.limits
    if (declaredBytes > lingerBytes) return answer("close")
    const timer = setTimeout(() => answer("close"), lingerMillis)
    this.response.once("close", () => clearTimeout(timer))
  }

  protected override drop(): void {
    this.chunks = []
    this.release()
  }

  protected override get isRefused(): boolean {
    return this.refusal !== undefined
  }

  private readonly tooLarge = (ending: Ending): void => this.fail(this.failures.bodyTooLarge, ending)
}
