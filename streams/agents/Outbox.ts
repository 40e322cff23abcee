import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { FrameSink } from "./FrameSink.ts"

/** A frame's fields before it has a number. `type` and `seq` lead in the text. */
export type Unnumbered = Readonly<Record<string, unknown>> & { readonly type: string }

export interface OutboxLimits {
  /** frames kept for a resume, in characters; the oldest go first */
  readonly ringBytes: number
  /** while more waits for the client, deltas are gathered into larger ones … */
  readonly coalesceBytes: number
  /** … and above this the socket is closed; the client resumes */
  readonly slowBytes: number
}

interface Entry {
  readonly seq: number
  readonly text: string
  /** of a delta, the message that it is a piece of; of a message's end, that message */
  readonly messageId: string
  readonly role: "delta" | "end" | "request" | "other"
  /** tells of a step, and waits until that is stored */
  readonly isAnnouncement: boolean
}

interface PendingDelta {
  readonly promptId: string
  readonly kind: "text_delta" | "thinking_delta"
  readonly messageId: string
  readonly contentIndex: number
  text: string
}

/** Characters of deltas gathered for a slow client; far below what a frame may have, however it is escaped. */
const gatheredMax = 100_000
const gatheredUsually = 8_192

/**
 * The frames of one session on their way out. It numbers them, holds those back that tell of a step which is not stored
 * yet (and all behind them, so that the order stays), gathers deltas while the client is slow, and keeps what was sent
 * for a resume: of a finished message only its end. Source: contract/agents#resuming.
 */
export class Outbox {
  #sink: FrameSink | undefined
  #ring: Array<Entry> = []
  #ringBytes = 0
  #held: Array<Entry> = []
  #pending: PendingDelta | undefined
  #seq: number
  /** numbers up to this one are reserved in the store */
  #reserved: number
  /** announcements up to this number are stored */
  #committed: number
  #floor: number
  readonly #limits: OutboxLimits

  /** @param seq the last number that was used, or may have been */
  constructor(seq: number, reserved: number, limits: OutboxLimits) {
    this.#seq = seq
    this.#committed = seq
    this.#floor = seq
    this.#reserved = reserved
    this.#limits = limits
  }

  /** the last number given */
  get seq(): number {
    return this.#seq
  }

  /** Frames up to this number are not kept here any more: their steps are in the store. */
  get floor(): number {
    return this.#floor
  }

  get isAttached(): boolean {
    return this.#sink !== undefined
  }

  /** A frame that is good to go. */
  say(frame: Unnumbered): void {
    this.#flushDelta()
    this.#enqueue(this.#entry(frame, "other", "", false))
  }

  /** A tool request: not replayed, because open calls are asked for anew. */
  request(frame: Unnumbered): void {
    this.#flushDelta()
    this.#enqueue(this.#entry(frame, "request", "", false))
  }

  /** A frame that tells of a step: it waits for `commit`. Answers its number, which is stored with the step. */
  announce(frame: Unnumbered, endOfMessage = ""): number {
    this.#flushDelta()
    const entry = this.#entry(frame, endOfMessage === "" ? "other" : "end", endOfMessage, true)
    this.#enqueue(entry)
    return entry.seq
  }

  /** The steps announced up to this number are stored, and numbers up to another are reserved. */
  commit(seq: number, reserved: number): void {
    this.#committed = Math.max(this.#committed, seq)
    this.#reserved = Math.max(this.#reserved, reserved)
    this.#release()
  }

  /** A piece of what a model says. */
  delta(
    promptId: string,
    kind: PendingDelta["kind"],
    messageId: string,
    contentIndex: number,
    text: string
  ): void {
    const pending = this.#pending
    if (
      pending !== undefined &&
      pending.messageId === messageId &&
      pending.contentIndex === contentIndex &&
      pending.kind === kind
    )
      pending.text += text
    else {
      this.#flushDelta()
      this.#pending = { promptId, kind, messageId, contentIndex, text }
    }
    if (this.#mayFlush()) this.#flushDelta()
  }

  /** Deltas of a message that will have no end: it is tried again. */
  forget(messageId: string): void {
    if (this.#pending?.messageId === messageId) this.#pending = undefined
    this.#collapse(messageId)
  }

  /** The client has worked off everything up to this number. */
  acknowledge(seq: number): void {
    const kept = this.#ring.findIndex((entry) => entry.seq > seq)
    this.#drop(kept === -1 ? this.#ring.length : kept)
  }

  /** Sends what came after `lastSeq` and is kept here, and from then on what comes. */
  attach(sink: FrameSink, lastSeq: number): void {
    for (const { role, seq, text } of this.#ring) if (seq > lastSeq && role !== "request") sink.send(text)
    this.#sink = sink
  }

  detach(): void {
    this.#sink = undefined
  }

  /** The client has taken what waited for it. */
  drained(): void {
    this.#flushDelta()
  }

  /** Frames that may go but for their number wait for a reservation when few are left. */
  needsReservation(margin: number): boolean {
    return this.#seq + margin > this.#reserved
  }

  #mayFlush(): boolean {
    const length = this.#pending?.text.length ?? 0
    if (length >= gatheredMax) return true
    if (this.#held.length > 0 || this.#seq >= this.#reserved || this.#sink === undefined) return false
    const { bufferedBytes } = this.#sink
    if (bufferedBytes === 0) return true
    return bufferedBytes <= this.#limits.coalesceBytes && length >= gatheredUsually
  }

  #flushDelta(): void {
    const pending = this.#pending
    if (pending === undefined) return
    this.#pending = undefined
    const { contentIndex, kind, messageId, promptId, text } = pending
    const frame = { type: "event", promptId, kind, messageId, contentIndex, delta: text }
    this.#enqueue(this.#entry(frame, "delta", messageId, false))
  }

  #entry(frame: Unnumbered, role: Entry["role"], messageId: string, isAnnouncement: boolean): Entry {
    const { type, ...rest } = frame
    const seq = ++this.#seq
    return { seq, text: JSON.stringify({ type, seq, ...rest }), role, messageId, isAnnouncement }
  }

  #enqueue(entry: Entry): void {
    if (this.#held.length > 0 || !this.#mayGo(entry)) this.#held.push(entry)
    else this.#deliver(entry)
  }

  #mayGo({ isAnnouncement, seq }: Entry): boolean {
    return seq <= this.#reserved && (!isAnnouncement || seq <= this.#committed)
  }

  #release(): void {
    let gone = 0
    for (const entry of this.#held) {
      if (!this.#mayGo(entry)) break
      gone++
      this.#deliver(entry)
    }
    if (gone > 0) this.#held = this.#held.slice(gone)
    if (this.#mayFlush()) this.#flushDelta()
  }

  #deliver(entry: Entry): void {
    if (entry.role === "end") this.#collapse(entry.messageId)
    this.#ring.push(entry)
    this.#ringBytes += entry.text.length
    if (this.#ringBytes > this.#limits.ringBytes) this.#trim()
    const sink = this.#sink
    if (sink === undefined) return
    sink.send(entry.text)
    if (sink.bufferedBytes > this.#limits.slowBytes) sink.close(closeCodes.slow, "Too slow")
  }

  #trim(): void {
    let bytes = this.#ringBytes
    let count = 0
    // With room to spare, so that not every frame moves the whole ring.
    for (const { text } of this.#ring) {
      if (bytes <= this.#limits.ringBytes * 0.9) break
      bytes -= text.length
      count++
    }
    this.#drop(count)
  }

  #drop(count: number): void {
    if (count === 0) return
    for (const { seq, text } of this.#ring.slice(0, count)) {
      this.#ringBytes -= text.length
      this.#floor = seq
    }
    this.#ring = this.#ring.slice(count)
  }

  #collapse(messageId: string): void {
    const isPiece = (entry: Entry) => entry.role === "delta" && entry.messageId === messageId
    this.#ring = this.#ring.filter((entry) => !isPiece(entry))
    this.#ringBytes = this.#ring.reduce((sum, { text }) => sum + text.length, 0)
  }
}
