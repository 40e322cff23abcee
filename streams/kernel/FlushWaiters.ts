import { Effect } from "effect"
import type { LogConsumer } from "./DurableLog.ts"
import { SinkUnavailable } from "./Sink.ts"
import type { Trouble } from "./Trouble.ts"

interface FlushWaiter {
  readonly offset: number
  readonly resume: (effect: Effect.Effect<void, SinkUnavailable>) => void
}

/** Readers that wait for the sink to have what was accepted before they asked. */
export class FlushWaiters {
  readonly #consumer: LogConsumer
  readonly #trouble: Trouble
  readonly #timeoutMillis: number
  readonly #waiters = new Set<FlushWaiter>()
  #demandedTo = 0

  constructor(consumer: LogConsumer, trouble: Trouble, timeoutMillis: number) {
    this.#consumer = consumer
    this.#trouble = trouble
    this.#timeoutMillis = timeoutMillis
  }

  /** everything below it has been asked for */
  get demandedTo(): number {
    return this.#demandedTo
  }

  /** Returns when everything below `offset` is in the sink; `onDemand` is called if it has to wait. */
  flushTo(offset: number, onDemand: () => void): Effect.Effect<void, SinkUnavailable> {
    const flushed = Effect.callback<void, SinkUnavailable>((resume) => {
      if (this.#consumer.committed() >= offset) return resume(Effect.void)
      if (this.#trouble.current !== undefined) return resume(Effect.fail(this.#trouble.current))
      const waiter = { offset, resume }
      this.#waiters.add(waiter)
      this.#demandedTo = Math.max(this.#demandedTo, offset)
      onDemand()
      return Effect.sync(() => this.#waiters.delete(waiter))
    })
    return Effect.timeoutOrElse(flushed, {
      duration: this.#timeoutMillis,
      orElse: () => {
        const problem = `it is behind by ${offset - this.#consumer.committed()} records`
        return Effect.fail(new SinkUnavailable({ problem, cause: undefined, reason: "behind" }))
      }
    })
  }

  fail(error: SinkUnavailable): void {
    for (const waiter of this.#waiters) waiter.resume(Effect.fail(error))
    this.#waiters.clear()
  }

  /** Tells those for whom everything has been committed. */
  release(): void {
    for (const waiter of this.#waiters) {
      if (waiter.offset > this.#consumer.committed()) continue
      this.#waiters.delete(waiter)
      waiter.resume(Effect.void)
    }
  }
}
