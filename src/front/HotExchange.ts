import type { BodyOwner } from "./ByteBudget.ts"
import { failuresOf, type FrontAnswer, type HotFailures, jsonType, retrySoon } from "./FrontAnswer.ts"
import { attempt, type HotContext } from "./HotAnswer.ts"
import type { Headers } from "./HeaderBlock.ts"
import type { HotReply, HotRequest, HotRoute, HotStream } from "./HotRoute.ts"
import type { PieceStream } from "./PieceStream.ts"

/** The part of a route, hot or raw, that its exchanges are about. */
export type ServedRoute = Pick<HotRoute, "path" | "cors" | "errors" | "maxBodyBytes" | "admit">

/**
 * The fate of a connection after an answer: "announce" tells the client to close it, which goes on sending and could
 * lose the answer to a reset; "close" also does.
 */
export type Ending = "keep" | "announce" | "close"

const errorHeaders: Headers = [jsonType]
const overloadedHeaders: Headers = [jsonType, retrySoon]

/**
 * One request of a hot or raw route, from its first byte to its answer: request and reply of the handler in one object.
 * The engines' own classes read the body and write the answer.
 */
export abstract class HotExchange<
  Context extends HotContext,
  Stream extends { readonly pieces: PieceStream },
  Route extends ServedRoute
>
  implements HotRequest, HotReply
{
  abstract readonly method: string
  abstract readonly query: string
  abstract readonly remoteAddress: string
  abstract readonly isProxied: boolean
  aborted = false
  protected readonly route: Route
  protected readonly context: Context
  protected isAnswered = false
  protected streamed: Stream | undefined
  protected abortListeners: Array<() => void> | undefined
  /** once some of the body has to be kept */
  private owner: BodyOwner | undefined
  /** of the owner's share */
  private takenBytes = 0
  /** the route has refused the body before it was whole */
  private isRefusing = false

  constructor(route: Route, context: Context) {
    this.route = route
    this.context = context
  }

  get path(): string {
    return this.route.path
  }

  abstract header(name: string): string
  abstract stream(status: number, headers: Headers): HotStream
  /** Answers once the rest of the body is out of the way; a reset could cost the client the answer. */
  protected abstract refuse(answer: (ending: Ending) => void): void
  protected abstract readonly isRefused: boolean
  protected abstract write(status: number, headers: Headers, body: string | Uint8Array, ending: Ending): void
  /** Calls the route. */
  protected abstract call(body: Uint8Array): void
  /** Held bytes of the body are released. */
  protected abstract drop(): void
  /** Ends the connection. */
  protected abstract cut(): void

  send(status: number, headers: Headers, body?: string | Uint8Array): void {
    // The client is still sending where the body is refused unread.
    if (this.isRefusing) this.refuse((ending) => this.write(status, headers, body ?? "", ending))
    else this.write(status, headers, body ?? "", "keep")
  }

  onAbort(listener: () => void): void {
    if (this.aborted) listener()
    else (this.abortListeners ??= []).push(listener)
  }

  protected handle(body: Uint8Array): void {
    try {
      this.call(body)
    } catch (defect) {
      this.threw(defect)
    }
  }

  protected threw(defect: unknown): void {
    this.context.report(defect)
    // A stream that nothing will end.
    if (this.streamed?.pieces.isOver === false) this.cut()
    else this.answerFailed()
  }

  protected answerFailed(): void {
    this.fail(this.failures.failed, "keep")
  }

  /** Whether the body's owner may have so many more bytes kept; undefined where the route refuses the body unread. */
  protected takes(bytes: number): boolean | undefined {
    this.owner ??= this.context.held.ownerOf(this.route, this, (answer) => this.refuseUnread(answer))
    if (this.owner === undefined) return undefined
    const isTaken = this.owner.shares.take(this.owner.name, bytes)
    if (isTaken) this.takenBytes += bytes
    return isTaken
  }

  protected release(): void {
    this.owner?.shares.release(this.owner.name, this.takenBytes)
    this.takenBytes = 0
  }

  protected tooSlow(): void {
    this.drop()
    this.fail(this.failures.bodyTooSlow, "close")
  }

  private refuseUnread(answer: (reply: HotReply) => void): void {
    this.isRefusing = true
    attempt(() => answer(this), this.context)
    // It threw, or said nothing.
    if (!this.isRefused) this.refuse((ending) => this.fail(this.failures.failed, ending))
  }

  protected get failures(): HotFailures {
    return failuresOf(this.route.errors)
  }

  protected fail(answer: FrontAnswer, ending: Ending): void {
    const { overloaded } = this.failures
    this.write(answer.status, answer === overloaded ? overloadedHeaders : errorHeaders, answer.body, ending)
  }
}
