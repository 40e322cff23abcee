import { newId } from "#src/infra/crypto/Tokens.ts"
import { requestIdOf } from "#src/http/RequestId.ts"
import type { HotReply, HotRequest } from "#src/front/HotRoute.ts"
import { invalidKey } from "#src/accounts/Admission.ts"
import { bodyOf, headersOf, type Problem } from "#schemas/core/Problem.ts"
import type { ChunkHead } from "./CallParts.ts"
import { Client } from "./ClientStream.ts"
import type { ClientStream } from "./ClientStream.ts"
import { errorChunk } from "./StreamAnswer.ts"

type Header = readonly [name: string, value: string]

const json = "application/json"

/** One HTTP request for a model call, and its one answer. */
export class CallExchange {
  readonly startedAt = Date.now()
  readonly authorization: string
  readonly idempotencyKey: string
  readonly requestId: string
  /** `req_…`, the call's id in the ledger: the answer's X-Request-Id too, unless the caller sent one of their own */
  readonly callId: string
  /** emptied once it was read in a thread */
  readonly body: Buffer
  readonly client: Client
  /** the destination of the answer; recorded if it is to be kept */
  reply: HotReply
  /** the answer, if it is given in pieces */
  stream: ClientStream | undefined
  /** the fields that all chunks of a stream share, as far as they are known */
  streamHead: ChunkHead
  /** of the answer; 0 until there is one */
  status = 0
  /** the answer ended with an error, and does not count */
  isInvalid = false
  /** on every answer */
  readonly headers: Array<Header>
  /** receives the status of the answer */
  onStatus: (status: number) => void = () => undefined

  constructor(request: HotRequest, body: Uint8Array, reply: HotReply) {
    this.authorization = request.header("authorization")
    this.idempotencyKey = request.header("idempotency-key")
    const sent = request.header("x-request-id")
    this.requestId = requestIdOf(sent)
    // The ledger takes an id once only, and a caller may send the same one twice.
    this.callId = this.requestId === sent ? newId("req") : this.requestId
    // Finding the caller may take a query, and the front's bytes are gone by then.
    this.body = Buffer.from(body)
    this.client = new Client(reply)
    this.reply = reply
    this.streamHead = { id: this.callId, created: Math.trunc(this.startedAt / 1_000), model: "" }
    this.headers = [["X-Request-Id", this.requestId]]
  }

  /** The head of the answer goes out. */
  answers(status: number): void {
    this.status = status
    this.onStatus(status)
  }

  send(status: number, contentType: string, body: string, more: ReadonlyArray<Header> = []): void {
    this.answers(status)
    this.reply.send(status, [["Content-Type", contentType], ...this.headers, ...more], body)
  }

  sendJson(status: number, body: string): void {
    this.send(status, json, body)
  }

  /** The key has ended, and the answer with it. The part that was sent is charged as if the client had left. */
  expel(): void {
    this.isInvalid = true
    this.fail(invalidKey())
    this.client.expel()
  }

  fail(fault: Problem): void {
    // A stream without another end: its client would wait for ever.
    if (this.stream?.isOpen === true) {
      return this.stream.end(`${errorChunk(this.streamHead, fault)}data: [DONE]\n\n`)
    }
    this.send(fault.status, json, bodyOf(fault, "openai"), Object.entries(headersOf(fault)))
  }
}
