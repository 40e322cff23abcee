import { bodyOf, headersOf, type Problem } from "#schemas/core/Problem.ts"
import type { HotReply, HotRequest } from "#src/front/HotRoute.ts"
import { requestIdOf } from "#src/http/RequestId.ts"

type Header = readonly [name: string, value: string]

const json: Header = ["Content-Type", "application/json"]

/** One HTTP request of an endpoint, and its one answer. */
export class McpExchange {
  readonly requestId: string
  readonly request: HotRequest
  readonly reply: HotReply
  /** on every answer */
  readonly headers: Array<Header>
  /** receives the status of the answer */
  onStatus: (status: number) => void = () => undefined
  #isAnswered = false

  constructor(request: HotRequest, reply: HotReply) {
    this.request = request
    this.reply = reply
    this.requestId = requestIdOf(request.header("x-request-id"))
    this.headers = [["X-Request-Id", this.requestId]]
  }

  /** A no-op after the first answer: a key may end while one is made. */
  send(status: number, body: string | undefined, more: ReadonlyArray<Header> = []): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.onStatus(status)
    const type = body === undefined ? [] : [json]
    this.reply.send(status, [...type, ...this.headers, ...more], body)
  }

  /** A failure before the protocol: `{"error": "…"}`. */
  fail(problem: Problem): void {
    this.send(problem.status, bodyOf(problem, "plain"), Object.entries(headersOf(problem)))
  }
}
