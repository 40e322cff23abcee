import { dataOf } from "#streams/llm/SseFrames.ts"
import { parseRecord, readChunk, textOf } from "#streams/llm/ChatChunk.ts"

/** Characters of output that make a token, roughly. */
const charactersPerToken = 4

/** Events whose end may say why the stream ended. */
const lastFrames = 4

/**
 * What a stream has said so far: enough to tell how much of its hold is used up, and to count its tokens if the upstream
 * does not.
 */
export class Produced {
  readonly #keptMax: number
  readonly #kept: Array<Buffer> = []
  readonly #last: Array<Buffer> = []
  #keptBytes = 0
  #keptFrames = 0
  #frames = 0
  #bytes = 0
  #tooMany = 0
  /** bytes of an event besides what it says: those of the shortest */
  #envelopeBytes = Infinity

  constructor(keptMax: number) {
    this.#keptMax = keptMax
  }

  /** An event with content, whose bytes are copied. */
  add(frame: Buffer): void {
    const copy = Buffer.from(frame)
    this.#frames++
    this.#bytes += frame.length
    this.#envelopeBytes = Math.min(this.#envelopeBytes, frame.length)
    if (this.#keptBytes + frame.length <= this.#keptMax) {
      this.#kept.push(copy)
      this.#keptBytes += frame.length
      this.#keptFrames++
    }
    this.#last.push(copy)
    if (this.#last.length > lastFrames) this.#last.shift()
  }

  /** About so many output tokens: an event is one at least, and a long one more, until they were counted. */
  get tokens(): number {
    return this.#guess - this.#tooMany
  }

  /** The tokens so far were counted: what was guessed beyond them is forgotten. */
  counted(tokens: number): void {
    this.#tooMany = this.#guess - tokens
  }

  get #guess(): number {
    if (this.#frames === 0) return 0
    const said = this.#bytes - this.#frames * this.#envelopeBytes
    return Math.max(this.#frames, Math.ceil(said / charactersPerToken))
  }

  /** Why the last choice ended, where an event said so. */
  get finishReason(): string | undefined {
    for (const frame of this.#last.toReversed()) {
      const data = dataOf(frame)
      const reason = data === undefined ? undefined : readChunk(data)?.finishReason
      if (reason !== undefined) return reason
    }
    return undefined
  }

  /** The text, and how many times as much there was of it: more than 1 where not all was kept. */
  text(): { readonly text: string; readonly factor: number } {
    const texts = this.#kept.map((frame) => {
      const json = parseRecord(dataOf(frame) ?? "")
      return json === undefined ? "" : textOf(json)
    })
    return { text: texts.join(""), factor: this.#keptFrames === 0 ? 1 : this.#frames / this.#keptFrames }
  }
}
