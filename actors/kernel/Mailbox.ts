import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { SchedulerDispatcher } from "effect/Scheduler"

/** A message on its way: linked to the next one, so that a mailbox costs nothing while it is empty. */
export class Envelope {
  readonly tag: string
  readonly args: ReadonlyArray<unknown>
  /** continues the asker */
  readonly reply: (exit: Exit.Exit<unknown, unknown>) => void
  /** the asker has gone away: a message not begun is then not begun at all */
  isWithdrawn = false
  next: Envelope | undefined = undefined

  constructor(tag: string, args: ReadonlyArray<unknown>, reply: Envelope["reply"]) {
    this.tag = tag
    this.args = args
    this.reply = reply
  }
}

/**
 * A bounded queue between those who send and the actor's loop. It belongs to the key and not to one life of the actor,
 * so what waits in it outlives a crash and a passivation.
 */
export class Mailbox {
  readonly #capacity: number
  readonly #dispatcher: SchedulerDispatcher
  #first: Envelope | undefined
  #last: Envelope | undefined
  #size = 0
  #taker: (() => void) | undefined
  #isWakeScheduled = false

  constructor(capacity: number, dispatcher: SchedulerDispatcher) {
    this.#capacity = capacity
    this.#dispatcher = dispatcher
  }

  get size(): number {
    return this.#size
  }

  /** False, and nothing changed, when it is full. */
  offer(envelope: Envelope): boolean {
    if (this.#size >= this.#capacity) return false
    if (this.#last === undefined) this.#first = envelope
    else this.#last.next = envelope
    this.#last = envelope
    this.#size++
    // Through the dispatcher: a sender must not find itself running the actor's code before its own next line.
    if (this.#taker !== undefined && !this.#isWakeScheduled) {
      this.#isWakeScheduled = true
      this.#dispatcher.scheduleTask(this.#wake, 0)
    }
    return true
  }

  /** The next message whose asker still waits. Taking it and marking it in flight must be one synchronous step. */
  poll(): Envelope | undefined {
    while (this.#first !== undefined) {
      const envelope = this.#first
      this.#first = envelope.next
      if (this.#first === undefined) this.#last = undefined
      envelope.next = undefined
      this.#size--
      if (!envelope.isWithdrawn) return envelope
    }
    return undefined
  }

  /** Waits until `poll` is worth trying. */
  readonly awaitMessage: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#size > 0) return resume(Effect.void)
    this.#taker = () => resume(Effect.void)
    return Effect.sync(() => {
      this.#taker = undefined
    })
  })

  readonly #wake = (): void => {
    this.#isWakeScheduled = false
    const taker = this.#taker
    this.#taker = undefined
    taker?.()
  }
}
