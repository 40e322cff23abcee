/**
 * State: the stored part of a session: its facts, its state, its steps while they are needed, and the frames that tell
 * of them.
 * Messages: none; the session that extends it calls it synchronously.
 * Limits: those of its outbox; numbers of frames are reserved before they are used.
 * Restart policy: none of its own: it is dropped and loaded from the store again.
 * In a crash nothing sent to a client is lost: frames wait for their steps.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { Conversation } from "#streams/agents/Conversation.ts"
import { Outbox, type OutboxLimits, type Unnumbered } from "#streams/agents/Outbox.ts"
import type { SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import type { CompactStep, PromptStep, Step, StepBody } from "#streams/agents/Step.ts"
import { frameOf } from "#streams/agents/StepFrames.ts"
import type { OwnershipLost, SessionWrite } from "./StepStore.ts"

export interface RecordLimits {
  /** numbers of frames that are reserved at a time */
  readonly agentSeqReserve: number
}

export interface RecordParts {
  readonly limits: RecordLimits
  readonly outboxLimits: OutboxLimits
  readonly now: () => number
  readonly write: (write: SessionWrite) => Effect.Effect<void, OwnershipLost>
  readonly fork: (effect: Effect.Effect<void>) => void
}

/** One step to be stored, with the frame that tells of it where it is not the usual one. */
export interface Entry {
  readonly body: StepBody
  readonly frame?: Unnumbered
}

type Active = Pick<PromptStep | CompactStep, "kind" | "id">

/** The starting point of a session in this process. */
export interface SessionOrigin {
  readonly epoch: number
  /** the last number that a frame may have */
  readonly seq: number
  /** the number of steps stored */
  readonly steps: number
}

export const none: ReadonlyArray<never> = []

export abstract class StoredSession {
  readonly facts: SessionFacts
  readonly epoch: number
  readonly outbox: Outbox
  state: SessionState
  /** the prompt or compaction under way */
  active: Active | undefined
  /** loaded while it is needed */
  conversation: Conversation | undefined
  /** Somebody else owns the session, or a write of it failed: nothing can be stored any more. */
  isLost = false
  protected isQuiet = false
  readonly #parts: RecordParts
  #steps: number
  #isReserving = false
  /** steps since the conversation was let go */
  #unloaded: ReadonlyArray<Step> = none

  constructor(parts: RecordParts, facts: SessionFacts, state: SessionState, origin: SessionOrigin) {
    this.#parts = parts
    this.facts = facts
    this.state = state
    this.epoch = origin.epoch
    this.#steps = origin.steps
    this.outbox = new Outbox(origin.seq, state.seqReserved, parts.outboxLimits)
  }

  /** Called for each failed write: the session has another owner, or could not be written. */
  protected abstract lost(): void

  /**
   * Stores steps, and changes of the state with them, and tells of them once they are stored. The order of calls is the
   * order of the steps. Ends when they are durable, with false where the session is lost.
   */
  record(entries: ReadonlyArray<Entry>, change: Partial<SessionState> = {}): Effect.Effect<boolean> {
    const promptId = this.active?.id ?? ""
    let announced = 0
    const at = this.#parts.now()
    const steps = entries.map(({ body, frame = frameOf(body, promptId) }): Step => {
      const endOf = body.kind === "message" ? body.messageId : ""
      const seq = frame === undefined ? 0 : this.outbox.announce(frame, endOf)
      announced = Math.max(announced, seq)
      const step: Step = { index: this.#steps++, seq, promptId, at, body }
      if (this.conversation === undefined) this.#unloaded = [...this.#unloaded, step]
      else this.conversation.add(step)
      return step
    })
    this.#change(change)
    return this.#write(steps, announced)
  }

  /** The state is so already. */
  protected has(wanted: Partial<SessionState>): boolean {
    return stateFields(wanted).every((field) => this.state[field] === wanted[field])
  }

  /** An empty session has nothing to load. */
  protected begun(): void {
    this.isQuiet = false
    if (this.#steps === 0) this.conversation = new Conversation([])
  }

  /** Takes back what was let go, as the store has it. */
  reload(conversation: Conversation): void {
    for (const step of this.#unloaded) conversation.add(step)
    this.#unloaded = none
    this.conversation = conversation
  }

  /** Called periodically: drops state that an idle session does not need, at its second idle call. */
  rest(): void {
    if (this.active === undefined && this.isQuiet) this.conversation = undefined
    this.isQuiet = this.active === undefined
  }

  /** Numbers for frames to come are reserved in good time. */
  protected reserve(): void {
    if (this.#isReserving || !this.outbox.needsReservation(this.#parts.limits.agentSeqReserve / 2)) return
    this.#isReserving = true
    this.#parts.fork(
      Effect.map(this.record([]), () => {
        this.#isReserving = false
      })
    )
  }

  #write(steps: ReadonlyArray<Step>, announced: number): Effect.Effect<boolean> {
    if (this.isLost) return Effect.succeed(false)
    const { limits, write } = this.#parts
    if (this.outbox.needsReservation(limits.agentSeqReserve / 2)) {
      const from = Math.max(this.outbox.seq, this.state.seqReserved)
      this.#change({ seqReserved: from + limits.agentSeqReserve })
    }
    const { state } = this
    const stored = Deferred.makeUnsafe<boolean>()
    const finished = write({ sessionId: this.facts.id, epoch: this.epoch, state, steps }).pipe(
      Effect.tapDefect((defect) =>
        Effect.annotateLogs(Effect.logError("A session could not be written", defect), {
          session: this.facts.id
        })
      ),
      // After a failed write all later ones would leave holes: the stored state is loaded again.
      Effect.matchCause({
        onSuccess: () => {
          this.outbox.commit(announced, state.seqReserved)
          return true
        },
        onFailure: () => {
          this.isLost = true
          this.lost()
          return false
        }
      })
    )
    this.#parts.fork(Effect.asVoid(Deferred.into(finished, stored)))
    return Deferred.await(stored)
  }

  #change(change: Partial<SessionState>): void {
    this.state = { ...this.state, ...change }
  }
}

const stateFields = (state: Partial<SessionState>): ReadonlyArray<keyof SessionState> =>
  Object.keys(state) as ReadonlyArray<keyof SessionState>
