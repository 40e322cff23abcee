import type { Limits } from "#src/Limits.ts"
import type { HotReply, HotStream } from "#src/front/HotRoute.ts"

/** Whether a client still waits for the answer. */
export class Client {
  #isGone = false
  #isAbandoned = false
  #isExpelled = false
  #stays = false
  readonly #listeners = new Set<() => void>()

  constructor(reply: Pick<HotReply, "onAbort">) {
    reply.onAbort(() => {
      if (!this.#stays) this.leave()
    })
  }

  /** The client is gone for good. */
  leave(): void {
    this.#isGone = true
    for (const listener of this.#listeners) listener()
    this.#listeners.clear()
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** It went because this platform ended it, not of its own will: its answer so far is the platform's loss. */
  get isAbandoned(): boolean {
    return this.#isAbandoned
  }

  abandon(): void {
    this.#isAbandoned = true
  }

  /** Its key has ended: it counts as gone from here on, after an error with the reason. */
  expel(): void {
    this.#isExpelled = true
    this.leave()
  }

  /** The reason why the client is gone, as the record has it. */
  get goneCode(): "client_gone" | "invalid_api_key" {
    return this.#isExpelled ? "invalid_api_key" : "client_gone"
  }

  /** The answer is wanted even without its client: from here on no leaving counts. */
  stay(): void {
    this.#stays = true
  }

  /** Called once when the client goes away; the answer takes it back. */
  onGone(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}

/** A streamed answer on its way to the caller. */
export interface AnswerStream {
  /** Content was sent: faults from here on are sent in the stream. */
  readonly isOpen: boolean
  /** One event, or several, of the event stream; false where the client does not keep up. */
  write(piece: string | Uint8Array): boolean
  end(piece: string): void
  /** Ends without further events: the client is gone, or gets another answer than a stream. */
  dispose(): void
}

type Headers = ReadonlyArray<readonly [string, string]>

const keepAlive = ": keep-alive\n\n"

/**
 * The event stream of one call to its client. Its head waits for the first content, or `streamHeadMillis`, so that until
 * then any error can still be answered with a status; in silence it sends comments.
 */
export class ClientStream implements AnswerStream {
  readonly #reply: HotReply
  readonly #headers: Headers
  readonly #limits: Limits
  readonly #onDrain: () => void
  readonly #onOpen: () => void
  #stream: HotStream | undefined
  #timer: NodeJS.Timeout
  #isOver = false

  constructor(reply: HotReply, headers: Headers, limits: Limits, onDrain: () => void, onOpen: () => void) {
    this.#reply = reply
    this.#headers = headers
    this.#limits = limits
    this.#onDrain = onDrain
    this.#onOpen = onOpen
    this.#timer = setTimeout(() => this.#sayAlive(), limits.streamHeadMillis)
  }

  /** The head is out. */
  get isOpen(): boolean {
    return this.#stream !== undefined
  }

  /** Answers false if the client does not keep up. */
  write(piece: string | Uint8Array): boolean {
    if (this.#isOver) return true
    const stream = this.#stream ?? this.#open()
    this.#timer.refresh()
    return stream.write(piece)
  }

  /** Later writes have no effect. */
  end(piece: string): void {
    if (this.#isOver) return
    const stream = this.#stream ?? this.#open()
    this.#isOver = true
    clearTimeout(this.#timer)
    stream.end(piece)
  }

  /** Ends without further events: the client is gone, or gets another answer than a stream. */
  dispose(): void {
    clearTimeout(this.#timer)
  }

  #open(): HotStream {
    const stream = this.#reply.stream(200, this.#headers)
    stream.onDrain(this.#onDrain)
    this.#stream = stream
    this.#onOpen()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#sayAlive(), this.#limits.keepAliveMillis)
    return stream
  }

  #sayAlive(): void {
    // A client with unread bytes needs no sign of life.
    if (this.#stream === undefined || this.#stream.bufferedBytes === 0) this.write(keepAlive)
    this.#timer.refresh()
  }
}
