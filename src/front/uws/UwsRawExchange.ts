import type { UwsRequest, UwsResponse } from "./Addon.ts"
import type { FrontState } from "./FrontState.ts"
import type { HotContext } from "../HotAnswer.ts"
import type { Headers } from "../HeaderBlock.ts"
import type { Ending } from "../HotExchange.ts"
import type { FullHead } from "./HotHead.ts"
import type { HotStream } from "../HotRoute.ts"
import { FileSource } from "../FileSender.ts"
import { PulledBody } from "../PulledBody.ts"
import { answerSource, answerStream } from "../RawAnswers.ts"
import type { RawMatch, RoutedRaw } from "../RawPaths.ts"
import { EarlyAnswer } from "../EarlyAnswer.ts"
import {
  type ByteSource,
  type FileRange,
  type FileSent,
  firstOf,
  type RawReply,
  type RawRequest,
  type RawRoute
} from "../RawRoute.ts"
import { UwsExchange } from "./UwsExchange.ts"
import { UwsFile } from "./UwsFile.ts"
import { UwsPulledBody } from "./UwsPulledBody.ts"

const noBytes = new Uint8Array(0)

/** One request of a raw route. */
export class UwsRawExchange extends UwsExchange<RawRoute> implements RawRequest, RawReply {
  readonly params: RawMatch["params"]
  readonly headers: ReadonlyArray<string>
  private readonly url: string
  private readonly body: UwsPulledBody | undefined
  readonly early: EarlyAnswer
  private file: UwsFile | undefined

  constructor(
    { params, route }: RoutedRaw,
    response: UwsResponse,
    request: UwsRequest,
    { head, headers }: FullHead,
    context: HotContext,
    state: FrontState
  ) {
    super(route, response, request, head, context, state)
    this.url = request.getUrl()
    this.params = params
    this.headers = headers
    const hasBody = head.isChunked || this.declaredBytes > 0
    const declared = head.isChunked ? undefined : this.declaredBytes
    this.body = hasBody ? new UwsPulledBody(response, declared, state) : undefined
    this.early = new EarlyAnswer(this.body)
  }

  /** Calls the handler. */
  begin(): void {
    this.state.inFlight++
    this.isCorked = true
    if (this.body !== undefined && this.declaredBytes > this.route.maxBodyBytes)
      this.refuse((ending) => this.fail(this.failures.bodyTooLarge, ending))
    else this.handle(noBytes)
    this.isCorked = false
    // Nothing can come from the socket before this returns, so an answer given at once is spared both handlers.
    if (this.isComplete || this.aborted) return
    this.response.onAborted(() => this.abort())
    if (this.body !== undefined) this.response.onData((chunk, isLast) => this.receive(chunk, isLast))
  }

  override get path(): string {
    return this.url
  }

  header(name: string): string {
    return firstOf(this.headers, name)
  }

  override send(status: number, headers: Headers, body: string | Uint8Array = ""): void {
    if (this.early.isChosen) return
    this.early.choose((ending) => this.write(status, headers, body, ending))
  }

  override stream(status: number, headers: Headers): HotStream {
    return answerStream(this, status, headers, () => {
      super.stream(status, headers)
      return this.streamed?.pieces
    })
  }

  sendFile(status: number, headers: Headers, file: FileRange, sent?: FileSent): void {
    this.sendSource(status, headers, new FileSource(file), sent)
  }

  sendSource(status: number, headers: Headers, source: ByteSource, sent?: FileSent): void {
    answerSource(this, this.context, {
      source,
      sent,
      begin: (tell) => this.begun(status, headers, source, tell),
      headAlone: (length) => {
        this.headLength = length
        this.send(status, headers)
      }
    })
  }

  lastOfConnection(): void {
    this.early.isLast = true
  }

  override cut(): void {
    if (this.isComplete || this.aborted) return
    this.response.close()
    // uWebSockets.js has told so already, except where the abort handler was not attached yet.
    this.abort()
  }

  private begun(status: number, headers: Headers, source: ByteSource, sent: FileSent): void {
    this.isAnswered = true
    this.file = new UwsFile(this.response, this.state, this.context.blocks, source, this.isLast, {
      writeHead: () => {
        this.writeHead(status, headers)
        if (this.isLast || this.state.isDraining) this.response.writeHeader("Connection", "close")
      },
      ended: () => {
        this.leaveBody()
        this.state.finished()
      },
      failed: (cause) => {
        this.context.report(cause)
        this.cut()
      },
      sent
    })
    this.file.sender.start()
  }

  private receive(chunk: ArrayBuffer, isLast: boolean): void {
    this.isCorked = true
    this.body?.receive(chunk, isLast)
    this.isCorked = false
  }

  protected override call(): void {
    const handled = this.route.handle(this, new PulledBody(this.body, this.route.maxBodyBytes), this)
    if (handled !== undefined) handled.catch((defect: unknown) => this.threw(defect))
  }

  protected override answerFailed(): void {
    if (!this.early.isChosen) this.refuse((ending) => this.fail(this.failures.failed, ending))
  }

  protected override refuse(answer: (ending: Ending) => void): void {
    this.early.choose(answer)
  }

  protected override get isRefused(): boolean {
    return this.early.isChosen
  }

  protected override get isComplete(): boolean {
    return this.file === undefined ? super.isComplete : this.file.isComplete
  }

  protected override leaveBody(): void {
    this.body?.detach()
  }

  protected override abortBody(): void {
    this.body?.abort()
    this.file?.abort()
  }

  /** Nothing is held for the route. */
  protected override drop(): void {}
}
