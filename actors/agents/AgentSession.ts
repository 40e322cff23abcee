/**
 * State: one session: its facts, outgoing frames, open tool calls and attached client. No fiber while idle.
 * Messages: none; the gateway hands it its client's frames, and its run drives it, synchronously.
 * Limits: the ring of its outbox, `queue` messages that wait, one prompt at a time.
 * Restart policy: none of its own: it is dropped and loaded from the store again.
 * In a crash deltas are lost and reported as such (replay_gap); every step sent to a client is stored.
 */
import * as Effect from "effect/Effect"
import { closeCodes, type EventKind, type EventOf, type ServerBye } from "#schemas/agents/ServerFrame.ts"
import type { Conversation } from "#streams/agents/Conversation.ts"
import { byeFrame } from "#streams/agents/ByeFrame.ts"
import type { FrameSink } from "#streams/agents/FrameSink.ts"
import type { Unnumbered } from "#streams/agents/Outbox.ts"
import type { SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import type { CompactStep, PromptStep, QueuedStep, StepBody } from "#streams/agents/Step.ts"
import { type CallAsk, type CallLimits, type CallOutcome, OpenCalls } from "./OpenCalls.ts"
import {
  type Entry,
  none,
  type RecordLimits,
  type RecordParts,
  type SessionOrigin,
  StoredSession
} from "./StoredSession.ts"

export type SessionLimits = CallLimits & RecordLimits

/** The surroundings of a session. */
export interface SessionParts extends RecordParts {
  readonly limits: SessionLimits
  /** A prompt is there to be worked on. */
  readonly work: (session: AgentSession) => void
  /** Somebody else owns the session. */
  readonly lost: (session: AgentSession) => void
}

/** A client that has said hello. */
export interface AttachedClient {
  readonly sink: FrameSink
  readonly journalId: string
  /** of the key that it came with */
  readonly keyId: string
}

/** A sign of life so soon after the last one that was stored is not stored again. */
const seenAgainMillis = 5_000

/** Ids of prompts and steers remembered so that one sent twice is one. */
const rememberedIds = 32

export class AgentSession extends StoredSession {
  readonly calls: OpenCalls
  queue: ReadonlyArray<QueuedStep> = none
  /** the key that its model calls are made with: of who attached last, until then of who began it */
  payerId: string
  /** a run is there for it */
  isWorking = false
  /** frames of its client are ignored from now on */
  isEnding = false
  /** a model is being asked */
  isAnswering = false
  /** the person wants the active prompt to end */
  abortion: AbortController = nobodys
  readonly #parts: SessionParts
  #seen: ReadonlyArray<string> = none
  #client: AttachedClient | undefined
  #whenAttached: ReadonlyArray<() => void> = none

  constructor(parts: SessionParts, facts: SessionFacts, state: SessionState, origin: SessionOrigin) {
    super(parts, facts, state, origin)
    this.#parts = parts
    this.payerId = facts.keyId
    this.calls = new OpenCalls(this.outbox, parts.limits)
  }

  get client(): AttachedClient | undefined {
    return this.#client
  }

  /** Puts the session where its stored steps end. */
  restore(conversation: Conversation): void {
    this.conversation = conversation
    this.active = conversation.active
    if (this.active !== undefined) this.abortion = new AbortController()
    for (const { body } of conversation.steps) {
      if (body.kind === "queued") this.#hold(body)
      if (body.kind === "unqueued") this.queue = []
      if (body.kind === "applied") this.queue = this.queue.filter(({ id }) => id !== body.id)
      if (body.kind === "prompt" || body.kind === "compact") this.#remember(body.id)
    }
  }

  /** A prompt, steer or compaction with this id was taken before. */
  hasSeen(id: string): boolean {
    return this.#seen.includes(id)
  }

  /** An event that no step stands for. */
  say<K extends EventKind>(event: { readonly kind: K } & EventOf<K>): void {
    const { kind, ...rest } = event
    this.outbox.say({ type: "event", promptId: this.active?.id ?? "", kind, ...rest })
    this.reserve()
  }

  delta(kind: "text_delta" | "thinking_delta", messageId: string, contentIndex: number, delta: string): void {
    this.outbox.delta(this.active?.id ?? "", kind, messageId, contentIndex, delta)
    this.reserve()
  }

  begin(body: PromptStep | CompactStep): void {
    this.begun()
    this.active = body
    this.abortion = new AbortController()
    this.#remember(body.id)
    const prompts = this.state.prompts + (body.kind === "prompt" ? 1 : 0)
    this.#parts.fork(Effect.asVoid(this.record([{ body }], { status: "running", prompts })))
    this.#parts.work(this)
  }

  /** The active prompt's last step is stored. */
  finish(): void {
    this.active = undefined
    this.abortion = nobodys
  }

  enqueue(body: QueuedStep): void {
    this.#hold(body)
    this.#parts.fork(Effect.asVoid(this.record([{ body, frame: this.#queueUpdate() }])))
  }

  /** Adds the waiting steps of a mode to the conversation. */
  apply(isTaken: (waiting: QueuedStep) => boolean): Effect.Effect<boolean> {
    const taken = this.queue.filter(isTaken)
    if (taken.length === 0) return Effect.succeed(true)
    this.queue = this.queue.filter((waiting) => !taken.includes(waiting))
    const entries = taken.map(({ id, text }): Entry => ({ body: { kind: "applied", id, text } }))
    const stored = this.record(entries)
    this.outbox.say(this.#queueUpdate())
    return stored
  }

  abort(clearQueue: boolean): void {
    if (clearQueue && this.queue.length > 0) {
      this.queue = []
      const body: StepBody = { kind: "unqueued" }
      this.#parts.fork(Effect.asVoid(this.record([{ body, frame: this.#queueUpdate() }])))
    }
    if (this.active === undefined) return
    this.abortion.abort()
    this.calls.abort()
    this.#wake()
  }

  /** Asks the client, now or when there is one, and waits for what comes of it. */
  ask(call: CallAsk, isSent: boolean): Effect.Effect<CallOutcome> {
    return Effect.callback((resume) => {
      const takenBy = this.conversation?.takenBy(call.callId)
      const close = this.calls.open(call, takenBy, isSent, (outcome) => resume(Effect.succeed(outcome)))
      if (this.abortion.signal.aborted) this.calls.abort()
      else this.#dispatch()
      return Effect.sync(close)
    })
  }

  /** Until a client is there, or the prompt is aborted. */
  attached(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#client !== undefined || this.abortion.signal.aborted) return resume(Effect.void)
      const wake = () => resume(Effect.void)
      this.#whenAttached = [...this.#whenAttached, wake]
      return Effect.sync(() => {
        this.#whenAttached = this.#whenAttached.filter((one) => one !== wake)
      })
    })
  }

  /**
   * Attaches a client to the session; the one before is detached.
   * @param missed the steps before those of the outbox, from the store
   */
  attach(
    client: AttachedClient,
    replay: { readonly ready: string; readonly lastSeq: number; readonly missed: ReadonlyArray<string> },
    change: Partial<SessionState>
  ): void {
    const { lastSeq, missed, ready } = replay
    this.dismiss("superseded", closeCodes.superseded)
    this.#client = client
    this.payerId = client.keyId
    const { sink } = client
    sink.send(ready)
    for (const frame of missed) sink.send(frame)
    this.outbox.attach(sink, lastSeq)
    if (this.queue.length > 0) this.outbox.say(this.#queueUpdate())
    this.#dispatch()
    const { journalId } = client
    const lastSeenAt = this.#parts.now()
    const attached = { ...change, journalId, detachedAt: null }
    // A new session is stored with all of this: its first client changes nothing.
    if (lastSeenAt - this.state.lastSeenAt > seenAgainMillis || !this.has(attached))
      this.#parts.fork(Effect.asVoid(this.record([], { ...attached, lastSeenAt })))
    this.#wake()
  }

  /** The socket of a client is gone. Nothing happens where another has taken its place. */
  detach(client: AttachedClient): void {
    if (this.#client !== client) return
    this.#leave()
    this.noteAbsence()
  }

  /** Notes that no client is attached, where the state says otherwise: one that it was claimed for was refused, or is gone. */
  noteAbsence(): void {
    if (this.#client !== undefined || this.state.detachedAt !== null) return
    const now = this.#parts.now()
    if (!this.isLost && this.state.status !== "ended")
      this.#parts.fork(Effect.asVoid(this.record([], { detachedAt: now, lastSeenAt: now })))
  }

  /** Sends the attached client away, if there is one. */
  dismiss(reason: ServerBye["reason"], code: number, retryAfterMs?: number): void {
    const client = this.#client
    if (client === undefined) return
    this.#leave()
    client.sink.send(byeFrame(reason, retryAfterMs))
    client.sink.close(code, reason)
  }

  protected override lost(): void {
    this.#parts.lost(this)
  }

  #leave(): void {
    this.#client = undefined
    this.outbox.detach()
    this.calls.detach()
  }

  #dispatch(): void {
    const client = this.#client
    if (client === undefined || this.calls.size === 0) return
    const { journalId } = client
    // Calls open a few at a time: this may be one that was sent before the server restarted.
    this.calls.giveUp(journalId)
    const callIds = this.calls.toNote(journalId)
    if (callIds.length === 0) return this.calls.send(journalId)
    const stored = this.record([{ body: { kind: "taken", callIds, journalId } }])
    this.#parts.fork(
      Effect.map(stored, (isStored) => {
        if (!isStored || this.#client !== client) return
        this.calls.noted(callIds, journalId)
        this.calls.send(journalId)
      })
    )
  }

  #queueUpdate(): Unnumbered {
    const queue = this.queue.map(({ id, mode, text }) => ({ id, text, mode }))
    return { type: "event", promptId: this.active?.id ?? "", kind: "queue_update", queue }
  }

  #hold(body: QueuedStep): void {
    this.queue = [...this.queue, body]
    this.#remember(body.id)
  }

  #remember(id: string): void {
    this.#seen = [...this.#seen, id].slice(-rememberedIds)
  }

  #wake(): void {
    const waiting = this.#whenAttached
    this.#whenAttached = none
    for (const wake of waiting) wake()
  }
}

/** Of a session without a prompt: never aborted. */
const nobodys = new AbortController()
