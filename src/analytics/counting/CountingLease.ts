import { Context, Effect } from "effect"
import { SinkUnavailable } from "#streams/kernel/Sink.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"

/** Under what this process writes visits. */
export interface Held {
  readonly epoch: number
  /**
   * Events of this process's log below this offset were taken before it knew all ids that others had taken: each with an
   * id is compared with those first
   */
  readonly uncheckedTo: number
  /** other processes can have the same stores, and get the ids */
  readonly isShared: boolean
}

/** `taking-over`: it has the lease, and others may still be counting. `unconfirmed`: no store can be asked about it */
type CountingState = "counting" | "standby" | "taking-over" | "unconfirmed"

/**
 * Whether this process counts: takes events, writes visits and answers figures. Of all processes on one Postgres one
 * does. Without the layer that keeps the lease there is one process only, and it always does.
 */
export interface CountingLeaseService {
  readonly state: () => CountingState
  /** for the path of every event: a boolean in memory */
  readonly isCounting: () => boolean
  /** why not, for a caller */
  readonly refusal: () => string
  /** Waits until visits may be written; undefined: without a lease. Fails when the process ends without it. */
  readonly held: Effect.Effect<Held | undefined, SinkUnavailable>
  /** the store knows a later epoch: another process counts */
  readonly superseded: (epoch: number) => void
  /** Answers only if this process counted from the beginning to the end of the read, else 503. */
  readonly whileCounting: <A, E, R>(
    read: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | ServiceUnavailable, R>
}

/** Of a process without the layer that keeps the lease. */
export const alone: CountingLeaseService = {
  state: () => "counting",
  isCounting: () => true,
  refusal: () => "",
  held: Effect.undefined,
  superseded: () => undefined,
  whileCounting: (read) => read
}

export const CountingLease = Context.Reference<CountingLeaseService>("signalbox/analytics/CountingLease", {
  defaultValue: () => alone
})

const refusals: Readonly<Record<CountingState, string>> = {
  counting: "",
  standby: "standby: another process counts events for these stores; send this to that one",
  "taking-over":
    "standby: this process is taking over from another that counted events; try again in a moment",
  unconfirmed:
    "standby: neither Postgres nor ClickHouse says that this process still counts; nothing is lost, try again later"
}

/** Two clocks: the monotonic one stands still while a machine sleeps, the other may be set. */
export interface Instant {
  readonly monotonicMillis: number
  readonly wallMillis: number
}

export const instant = (): Instant => ({ monotonicMillis: performance.now(), wallMillis: Date.now() })

const elapsedSince = ({ monotonicMillis, wallMillis }: Instant): number =>
  Math.max(performance.now() - monotonicMillis, Date.now() - wallMillis)

/** Pause between two looks whether a lease that ran out is confirmed. */
const lookMillis = 25

/** The lease's state, written by its keeper and read by all others, between two turns of the event loop. */
export class LeaseState implements CountingLeaseService {
  readonly #lastsMillis: number
  readonly #waiting = new Set<() => void>()
  #state: CountingState = "standby"
  #held: Held | undefined
  #confirmedAt: Instant | undefined
  #isClosing = false
  #superseded = -1

  constructor(lastsMillis: number) {
    this.#lastsMillis = lastsMillis
  }

  readonly state = (): CountingState => this.#state
  readonly isCounting = (): boolean => this.#state === "counting"
  readonly refusal = (): string => refusals[this.#state]

  /** Postgres or ClickHouse says that the lease is held; the question was sent at this instant. */
  confirm(askedAt: Instant): void {
    this.#confirmedAt = askedAt
  }

  /** No other process can be counting, even if the stores now say otherwise. */
  isConfirmed(): boolean {
    return this.#confirmedAt !== undefined && elapsedSince(this.#confirmedAt) < this.#lastsMillis
  }

  become(state: CountingState): void {
    this.#state = state
    if (state === "standby") this.#held = undefined
  }

  /** From now on visits are written. */
  hold(held: Held): void {
    this.#held = held
    this.#wake()
  }

  /** The process ends: calls waiting for the lease fail. */
  close(): void {
    this.#isClosing = true
    this.#wake()
  }

  readonly superseded = (epoch: number): void => {
    this.#superseded = Math.max(this.#superseded, epoch)
  }

  isSuperseded(epoch: number): boolean {
    return epoch <= this.#superseded
  }

  readonly held: Effect.Effect<Held, SinkUnavailable> = Effect.callback((resume) => {
    const look = (): boolean => {
      if (this.#held === undefined && !this.#isClosing) return false
      this.#waiting.delete(look)
      resume(this.#held === undefined ? Effect.fail(notHeld) : Effect.succeed(this.#held))
      return true
    }
    if (look()) return
    this.#waiting.add(look)
    return Effect.sync(() => this.#waiting.delete(look))
  })

  readonly whileCounting = <A, E, R>(
    read: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | ServiceUnavailable, R> =>
    Effect.suspend(() => {
      const held = this.#held
      if (!this.isCounting()) return this.#refuse
      return Effect.tap(read, () => this.#stillCounting(held))
    })

  /** After a pause of the whole process the next answer about the lease decides. */
  #stillCounting(held: Held | undefined): Effect.Effect<void, ServiceUnavailable> {
    return Effect.suspend(() => {
      const isSame = held === undefined || this.#held?.epoch === held.epoch
      if (!this.isCounting() || !isSame) return this.#refuse
      if (this.isConfirmed()) return Effect.void
      return Effect.andThen(Effect.sleep(lookMillis), this.#stillCounting(held))
    })
  }

  readonly #refuse = Effect.suspend(() =>
    Effect.fail(ServiceUnavailable.of(this.refusal() || refusals.standby, { code: "standby" }))
  )

  #wake(): void {
    for (const look of this.#waiting) look()
  }
}

const notHeld = new SinkUnavailable({ problem: "another process counts", cause: undefined })
