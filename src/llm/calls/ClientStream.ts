import type { Limits } from "#src/Limits.ts"
import type { HotReply, HotStream } from "#src/front/HotRoute.ts"
import type { AnswerStream } from "./CallParts.ts"

type Headers = ReadonlyArray<readonly [string, string]>

const keepAlive = ": keep-alive\n\n"

/**
 * The event stream of one call to its client. Its head waits for the first content, or `streamHeadMillis`, so that until
 * then any error can still be answered with a status; in silence it says that it is alive.
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

  /** Answers false where the client does not keep up. */
  write(piece: string | Uint8Array): boolean {
    if (this.#isOver) return true
    const stream = this.#stream ?? this.#open()
    this.#timer.refresh()
    return stream.write(piece)
  }

  /** Later writes go nowhere. */
  end(piece: string): void {
    if (this.#isOver) return
    const stream = this.#stream ?? this.#open()
    this.#isOver = true
    clearTimeout(this.#timer)
    stream.end(piece)
  }

  /** Nothing more comes: the client is gone, or gets another answer than a stream. */
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
    // A client that does not even take what is there needs no sign of life.
    if (this.#stream === undefined || this.#stream.bufferedBytes === 0) this.write(keepAlive)
    this.#timer.refresh()
  }
}
