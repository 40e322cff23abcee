import { dataOf } from "#streams/llm/SseFrames.ts"
import { type ChatChunk, parseRecord, textOf } from "#streams/llm/ChatChunk.ts"

/** Characters of output in a token, roughly. */
const charactersPerToken = 4

/** Bytes that are kept in one object: an object for each event would have to be collected. */
const blockBytes = 2 * 1024
const noBlock: Buffer = Buffer.alloc(0)

/**
 * The output of a stream so far: enough to know how much of its hold is used up, and to count its tokens if the
 * upstream does not.
 */
export class StreamedOutput {
  readonly #keptMax: number
  /** the kept events, one behind the other, and where each of them ends */
  readonly #blocks: Array<Buffer> = []
  #block: Buffer = noBlock
  readonly #ends: Array<number> = []
  readonly #begun = new Set<number>()
  readonly #finished = new Set<number>()
  #keptBytes = 0
  #frames = 0
  #bytes = 0
  #tooMany = 0
  /** bytes of an event besides its content: those of the shortest */
  #envelopeBytes = Infinity
  /** the finish reason of the last choice that has one */
  finishReason: string | undefined

  constructor(keptMax: number) {
    this.#keptMax = keptMax
  }

  /** An event with content; its bytes are copied. */
  add(frame: Buffer): void {
    this.#frames++
    this.#bytes += frame.length
    this.#envelopeBytes = Math.min(this.#envelopeBytes, frame.length)
    if (this.#keptBytes + frame.length <= this.#keptMax) this.#keep(frame)
  }

  #keep(frame: Buffer): void {
    for (let copied = 0; copied < frame.length;) {
      const at = this.#keptBytes % blockBytes
      if (at === 0) {
        this.#block = Buffer.allocUnsafe(blockBytes)
        this.#blocks.push(this.#block)
      }
      const bytes = frame.copy(this.#block, at, copied)
      this.#keptBytes += bytes
      copied += bytes
    }
    this.#ends.push(this.#keptBytes)
  }

  /** An event that was read: the ends of choices, and all events if several answers are wanted. */
  read({ begun, finished, finishReason }: ChatChunk): void {
    for (const index of begun) this.#begun.add(index)
    for (const index of finished) this.#finished.add(index)
    this.finishReason = finishReason ?? this.finishReason
  }

  /** Whether every choice that has begun has ended. @param choices that have to have begun */
  hasFinished(choices = 1): boolean {
    const open = [...this.#begun].filter((index) => !this.#finished.has(index))
    return open.length === 0 && this.#finished.size >= choices
  }

  /** An estimate of the output tokens: an event is at least one, and a long one more, until they were counted. */
  get tokens(): number {
    return this.#guess - this.#tooMany
  }

  /** The tokens so far were counted: the excess of the guess is dropped. */
  counted(tokens: number): void {
    this.#tooMany = this.#guess - tokens
  }

  get #guess(): number {
    if (this.#frames === 0) return 0
    const said = this.#bytes - this.#frames * this.#envelopeBytes
    return Math.max(this.#frames, Math.ceil(said / charactersPerToken))
  }

  /** The text, and how many times as much there was of it: more than 1 where not all was kept. */
  text(): { readonly text: string; readonly factor: number } {
    const kept = Buffer.concat(this.#blocks, this.#keptBytes)
    const texts = this.#ends.map((end, place) => {
      const json = parseRecord(dataOf(kept.subarray(this.#ends[place - 1] ?? 0, end)) ?? "")
      return json === undefined ? "" : textOf(json)
    })
    return { text: texts.join(""), factor: texts.length === 0 ? 1 : this.#frames / texts.length }
  }
}
