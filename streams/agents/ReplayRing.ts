import type { SpokenPart } from "./SpokenPart.ts"

/** A frame that was sent, whole. */
export interface SentFrame {
  readonly seq: number
  readonly text: string
  /** of a piece of a message, or of its end, that message; otherwise "" */
  readonly messageId: string
  readonly role: "delta" | "end" | "request" | "other"
}

/** Pieces of a run, which goes as a whole, and the characters of its frames after which it takes no more. */
const piecesMax = 256
const runLength = 64 * 1024

/**
 * Pieces of a message with numbers that follow each other, in place of their frames: their texts are kept for the message
 * all the same. Thousands of sessions speak at a time, and what they keep is what every collection of garbage looks at.
 */
class SpokenRun {
  readonly part: SpokenPart
  readonly #firstSeq: number
  readonly #pieces: Array<string> = []
  /** characters of its frames */
  length = 0

  constructor(part: SpokenPart, firstSeq: number) {
    this.part = part
    this.#firstSeq = firstSeq
  }

  get messageId(): string {
    return this.part.messageId
  }

  get seq(): number {
    return this.#firstSeq + this.#pieces.length - 1
  }

  takes(part: SpokenPart, seq: number): boolean {
    const hasRoom = this.#pieces.length < piecesMax && this.length < runLength
    return hasRoom && this.part === part && seq === this.seq + 1
  }

  add(piece: string, frameLength: number): void {
    this.#pieces.push(piece)
    this.length += frameLength
  }

  *framesAfter(seq: number): IterableIterator<string> {
    for (const [place, piece] of this.#pieces.entries())
      if (this.#firstSeq + place > seq) yield this.part.frame(this.#firstSeq + place, piece)
  }
}

/** Frames that were sent and are kept for a resume, oldest first. Source: contract/agents#resuming. */
export class ReplayRing {
  #kept: Array<SentFrame | SpokenRun> = []
  #length = 0

  /** characters of all frames in it */
  get length(): number {
    return this.#length
  }

  add(frame: SentFrame): void {
    this.#kept.push(frame)
    this.#length += lengthOf(frame)
  }

  /** A piece of a message that is being spoken, whose frame has so many characters. */
  addPiece(part: SpokenPart, seq: number, delta: string, frameLength: number): void {
    let run = this.#kept.at(-1)
    if (!(run instanceof SpokenRun && run.takes(part, seq))) {
      run = new SpokenRun(part, seq)
      this.#kept.push(run)
    }
    run.add(delta, frameLength)
    this.#length += frameLength
  }

  /** Frames above a number. Requests are not among them, because open calls are asked for anew. */
  *framesAfter(seq: number): IterableIterator<string> {
    for (const kept of this.#kept) {
      if (kept instanceof SpokenRun) yield* kept.framesAfter(seq)
      else if (kept.seq > seq && kept.role !== "request") yield kept.text
    }
  }

  /** Lets go of frames up to a number, a run once all of it is below. Answers the number of the last, 0 where none went. */
  dropUpTo(seq: number): number {
    return this.#dropWhile((kept) => kept.seq <= seq)
  }

  /** Lets go of the oldest frames until there are no more than so many characters; as `dropUpTo`. */
  trimTo(length: number): number {
    return this.#dropWhile(() => this.#length > length)
  }

  /** Pieces of a message that has ended, or has no end. */
  forget(messageId: string): void {
    const isPiece = (kept: SentFrame | SpokenRun): boolean =>
      kept.messageId === messageId && (kept instanceof SpokenRun || kept.role === "delta")
    this.#kept = this.#kept.filter((kept) => !isPiece(kept))
    this.#length = this.#kept.reduce((sum, kept) => sum + lengthOf(kept), 0)
  }

  #dropWhile(isDropped: (kept: SentFrame | SpokenRun) => boolean): number {
    let count = 0
    let last = 0
    for (const kept of this.#kept) {
      if (!isDropped(kept)) break
      count++
      last = kept.seq
      this.#length -= lengthOf(kept)
    }
    if (count > 0) this.#kept = this.#kept.slice(count)
    return last
  }
}

const lengthOf = (kept: SentFrame | SpokenRun): number =>
  kept instanceof SpokenRun ? kept.length : kept.text.length
