import type { HotReply, HotStream } from "#src/front/HotRoute.ts"
import { type KeptAnswer, keptLengthMax } from "#src/infra/postgres/Idempotency.ts"

type Headers = ReadonlyArray<readonly [string, string]>

/**
 * A reply that is recorded as it is sent, so that it can be sent again. Its end waits for `flush`, by when it is kept:
 * the repetition of a complete answer finds it.
 */
export class RecordedReply implements HotReply {
  readonly original: HotReply
  #status = 0
  #headers: Headers = []
  #pieces: Array<string> = []
  #length = 0
  #isStream = false
  #isEnded = false
  #isFlushed = false
  /** the end of a stream */
  #last: () => void = () => undefined
  readonly #utf8 = new TextDecoder()

  constructor(reply: HotReply) {
    this.original = reply
  }

  get aborted(): boolean {
    return this.original.aborted
  }

  onAbort(listener: () => void): void {
    this.original.onAbort(listener)
  }

  send(status: number, headers: Headers, body: string | Uint8Array = ""): void {
    this.#status = status
    this.#headers = headers
    this.#add(body)
    this.#isEnded = true
  }

  stream(status: number, headers: Headers): HotStream {
    this.#status = status
    this.#headers = headers
    this.#isStream = true
    const stream = this.original.stream(status, headers)
    return {
      write: (piece) => {
        this.#add(piece)
        return stream.write(piece)
      },
      onDrain: (listener) => {
        stream.onDrain(listener)
        // A client that left takes no more bytes, and nothing waits for it.
        this.original.onAbort(listener)
      },
      end: (piece = "") => {
        this.#add(piece)
        this.#isEnded = true
        if (this.#isFlushed) stream.end(piece)
        else this.#last = () => stream.end(piece)
      },
      get bufferedBytes() {
        return stream.bufferedBytes
      }
    }
  }

  /** Sends the waiting bytes; later ones go at once. */
  flush(): void {
    if (this.#isFlushed) return
    this.#isFlushed = true
    this.#last()
    if (!this.#isStream && this.#isEnded)
      this.original.send(this.#status, this.#headers, this.#pieces.join(""))
  }

  /** The answer, once it is complete. */
  get answer(): KeptAnswer | undefined {
    if (!this.#isEnded) return undefined
    const contentType = this.#headers.find(([name]) => name.toLowerCase() === "content-type")?.[1]
    return {
      status: this.#status,
      contentType: contentType ?? "application/json",
      body: this.#length > keptLengthMax ? null : this.#pieces.join("")
    }
  }

  #add(piece: string | Uint8Array): void {
    const text = typeof piece === "string" ? piece : this.#utf8.decode(piece, { stream: true })
    this.#length += text.length
    // The answer in one piece is sent from here, however long.
    if (!this.#isStream || this.#length <= keptLengthMax) this.#pieces.push(text)
  }
}
