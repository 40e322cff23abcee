import { type Dispatcher, Pool } from "undici"
import type { UwsResponse } from "#src/front/uws/Addon.ts"
import { completionsPath } from "./Answers.ts"
import { bodyOf, serveForked } from "#bench/harness/ForkedServer.ts"

/**
 * The limit: a request that uWebSockets.js takes is dispatched by undici, and the response is written as it comes.
 * Nothing is looked at, counted or checked. A client that leaves ends the upstream's answer, a slow one pauses it.
 */
class Relay implements Dispatcher.DispatchHandler {
  private readonly response: UwsResponse
  private controller: Dispatcher.DispatchController | undefined
  private isGone = false
  private isBegun = false
  private isPaused = false
  /** of an answer that is sent whole */
  private whole: Array<Buffer> | undefined

  constructor(response: UwsResponse) {
    this.response = response
  }

  abandon(): void {
    this.isGone = true
    this.controller?.abort(new Error("the client has left"))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.isGone) controller.abort(new Error("the client has left"))
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | Array<string> | undefined>>
  ): void {
    this.head = () => {
      this.response.writeStatus(String(status)).writeHeader("Content-Type", String(headers["content-type"]))
    }
    if (headers["content-length"] !== undefined) this.whole = []
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.whole !== undefined) this.whole.push(chunk)
    else if (!this.isGone) this.response.cork(() => this.write(chunk))
  }

  onResponseEnd(): void {
    if (this.isGone) return
    this.isGone = true
    this.response.cork(() => {
      if (this.whole !== undefined) this.head()
      if (this.whole === undefined) this.response.end()
      else this.response.end(this.whole.length === 1 ? this.whole[0] : Buffer.concat(this.whole))
    })
  }

  onResponseError(): void {
    if (!this.isGone) this.response.close()
  }

  private head: () => void = () => undefined

  private write(chunk: Buffer): void {
    if (!this.isBegun) {
      this.isBegun = true
      this.head()
      this.response.onWritable(() => {
        // The cork alone writes what is left in the native buffer.
        this.response.cork(() => undefined)
        this.isPaused = false
        this.controller?.resume()
        return true
      })
    }
    if (this.response.write(chunk) || this.isPaused) return
    this.isPaused = true
    this.controller?.pause()
  }
}

const pipe = (port: string): void => {
  const pool = new Pool(`http://127.0.0.1:${port}`, { headersTimeout: 0, bodyTimeout: 0 })
  serveForked((app) => {
    app.post(completionsPath, (response) => {
      const relay = new Relay(response)
      response.onAborted(() => relay.abandon())
      bodyOf(response, (body) => {
        const headers = { "content-type": "application/json" }
        pool.dispatch({ method: "POST", path: completionsPath, headers, body }, relay)
      })
    })
  })
}

if (process.argv[1] === import.meta.filename) pipe(process.argv[2] ?? "")
