import type { IncomingMessage, ServerResponse } from "node:http"
import { EarlyAnswer } from "../EarlyAnswer.ts"
import type { Headers } from "../HeaderBlock.ts"
import type { Ending } from "../HotExchange.ts"
import type { HotStream } from "../HotRoute.ts"
import { FileSource } from "../FileSender.ts"
import { PulledBody } from "../PulledBody.ts"
import { answerSource, answerStream } from "../RawAnswers.ts"
import type { RawMatch, RoutedRaw } from "../RawPaths.ts"
import {
  type ByteSource,
  type FileRange,
  type FileSent,
  firstOf,
  type RawReply,
  type RawRequest,
  type RawRoute
} from "../RawRoute.ts"
import { NodeExchange, type NodeHotContext, splitTarget } from "./NodeExchange.ts"
import { NodeFile } from "./NodeFile.ts"
import { NodePulledBody } from "./NodePulledBody.ts"

const noBytes = new Uint8Array(0)

/** One request of a raw route on Node's server; the counterpart of `UwsRawExchange`. */
export class NodeRawExchange extends NodeExchange<RawRoute> implements RawRequest, RawReply {
  readonly params: RawMatch["params"]
  readonly headers: ReadonlyArray<string>
  private readonly body: NodePulledBody | undefined
  readonly early: EarlyAnswer
  private file: NodeFile | undefined

  constructor(
    { params, route }: RoutedRaw,
    request: IncomingMessage,
    response: ServerResponse,
    context: NodeHotContext,
    expectsContinue: boolean
  ) {
    super(route, request, response, context)
    this.params = params
    this.headers = request.rawHeaders.map((text, index) => (index % 2 === 0 ? text.toLowerCase() : text))
    const declared = request.headers["content-length"]
    const isChunked = request.headers["transfer-encoding"] !== undefined
    const declaredBytes = isChunked ? undefined : Number(declared ?? 0)
    if (declaredBytes !== 0)
      this.body = new NodePulledBody(request, response, context.limits, declaredBytes, expectsContinue)
    this.early = new EarlyAnswer(this.body)
  }

  /** Calls the handler. */
  begin(): void {
    const { body, response, route } = this
    response.on("close", () => this.closed())
    if (body !== undefined) this.context.arriving.set(response, body)
    if ((body?.declaredBytes ?? 0) > route.maxBodyBytes)
      this.refuse((ending) => this.fail(this.failures.bodyTooLarge, ending))
    else this.handle(noBytes)
  }

  override get path(): string {
    return splitTarget(this.request.url ?? "")[0]
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
    if (!this.isComplete && !this.aborted) this.response.destroy()
  }

  private begun(status: number, headers: Headers, source: ByteSource, sent: FileSent): void {
    const { context, response } = this
    this.isAnswered = true
    context.streaming.add(response)
    this.writeHead(status, headers, ["Content-Length", String(source.to - source.from)])
    this.file = new NodeFile(response, context.limits.stalledStreamMillis, context.blocks, source, {
      sent,
      failed: (cause) => {
        context.report(cause)
        this.cut()
      }
    })
    this.file.sender.start()
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

  protected override abortBody(): void {
    this.body?.abort()
    this.file?.abort()
  }

  /** Nothing is held for the route. */
  protected override drop(): void {}
}
