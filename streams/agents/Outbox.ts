import { closeCodes } from "#schemas/agents/ServerFrame.ts"
import type { FrameSink } from "./FrameSink.ts"
import { ReplayRing, type SentFrame } from "./ReplayRing.ts"
import { SpokenPart } from "./SpokenPart.ts"

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

interface Entry extends SentFrame {
  /** tells of a step, and waits until that is stored */
  readonly isAnnouncement: boolean
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
  /** made with the first frame: most sessions are idle */
  #ring: ReplayRing | undefined
  #held: Array<Entry> | undefined
  /** the part of a message that is being spoken, and what of it was gathered and is not numbered yet */
  #part: SpokenPart | undefined
  #gathered = ""
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
    kind: "text_delta" | "thinking_delta",
    messageId: string,
    contentIndex: number,
    text: string
  ): void {
    if (this.#part?.is(kind, messageId, contentIndex) !== true) {
      this.#flushDelta()
      this.#part = new SpokenPart(promptId, kind, messageId, contentIndex)
    }
    this.#gathered += text
    if (this.#mayFlush()) this.#flushDelta()
  }

  /** Deltas of a message that will have no end: it is tried again. */
  forget(messageId: string): void {
    if (this.#part?.messageId === messageId) this.#gathered = ""
    this.#collapse(messageId)
  }

  /** The client has worked off everything up to this number. */
  acknowledge(seq: number): void {
    this.#dropped(this.#ring?.dropUpTo(seq) ?? 0)
  }

  /** Sends what came after `lastSeq` and is kept here, and from then on what comes. */
  attach(sink: FrameSink, lastSeq: number): void {
    for (const text of this.#ring?.framesAfter(lastSeq) ?? []) sink.send(text)
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
    const { length } = this.#gathered
    if (length === 0) return false
    if (length >= gatheredMax) return true
    if (this.#held !== undefined || this.#seq >= this.#reserved || this.#sink === undefined) return false
    const { bufferedBytes } = this.#sink
    if (bufferedBytes === 0) return true
    return bufferedBytes <= this.#limits.coalesceBytes && length >= gatheredUsually
  }

  #flushDelta(): void {
    const [part, delta] = [this.#part, this.#gathered]
    if (part === undefined || delta === "") return
    this.#gathered = ""
    const seq = ++this.#seq
    const text = part.frame(seq, delta)
    const entry: Entry = { seq, text, role: "delta", messageId: part.messageId, isAnnouncement: false }
    if (!this.#mayGo(entry)) return this.#hold(entry)
    this.#ringed().addPiece(part, seq, delta, text.length)
    this.#send(text)
  }

  #entry(frame: Unnumbered, role: Entry["role"], messageId: string, isAnnouncement: boolean): Entry {
    const { type, ...rest } = frame
    const seq = ++this.#seq
    return { seq, text: JSON.stringify({ type, seq, ...rest }), role, messageId, isAnnouncement }
  }

  #enqueue(entry: Entry): void {
    if (this.#mayGo(entry)) this.#deliver(entry)
    else this.#hold(entry)
  }

  #hold(entry: Entry): void {
    this.#held ??= []
    this.#held.push(entry)
  }

  /** Whether nothing is held before it, and it need not be held itself. */
  #mayGo(entry: Entry): boolean {
    return this.#held === undefined && this.#isFree(entry)
  }

  #isFree({ isAnnouncement, seq }: Entry): boolean {
    return seq <= this.#reserved && (!isAnnouncement || seq <= this.#committed)
  }

  #release(): void {
    const held = this.#held ?? []
    const kept = held.findIndex((entry) => !this.#isFree(entry))
    for (const entry of kept < 0 ? held : held.slice(0, kept)) this.#deliver(entry)
    this.#held = kept < 0 ? undefined : held.slice(kept)
    if (this.#mayFlush()) this.#flushDelta()
  }

  #deliver(entry: Entry): void {
    if (entry.role === "end") this.#collapse(entry.messageId)
    this.#ringed().add(entry)
    this.#send(entry.text)
  }

  #send(text: string): void {
    const ring = this.#ringed()
    const { ringBytes, slowBytes } = this.#limits
    // With room to spare, so that not every frame moves the whole ring.
    if (ring.length > ringBytes) this.#dropped(ring.trimTo(ringBytes * 0.9))
    const sink = this.#sink
    if (sink === undefined || sink.send(text)) return
    if (sink.bufferedBytes > slowBytes) sink.close(closeCodes.slow, "Too slow")
  }

  #ringed(): ReplayRing {
    this.#ring ??= new ReplayRing()
    return this.#ring
  }

  /** @param seq of the last frame that is not kept any more; 0: none went */
  #dropped(seq: number): void {
    this.#floor = Math.max(this.#floor, seq)
  }

  #collapse(messageId: string): void {
    if (this.#part?.messageId === messageId && this.#gathered === "") this.#part = undefined
    this.#ring?.forget(messageId)
  }
}
