import { Clock, Effect } from "effect"
import { type LogQuarantine, NotSetAside } from "#streams/kernel/LogQuarantine.ts"
import type { SetAside } from "#streams/kernel/Quarantine.ts"
import type { SinkRefused, SinkUnavailable } from "#streams/kernel/Sink.ts"

/** Requests of a user's keys on a day. */
export interface Count {
  readonly userId: string
  /** days since 1970-01-01 */
  readonly day: number
  requests: number
  errors: number
}

/** A count of a user and day is some hundred bytes. */
const asideMax = 1_000

interface Aside {
  readonly about: SetAside
  readonly count: Count
}

/**
 * Request counts that Postgres refuses, in memory as all counts are before they are written: a restart loses them. The
 * place of one is its number since the start. The oldest go where there are too many.
 */
export class AsideCounts {
  readonly #write: (count: Count) => Effect.Effect<unknown, SinkUnavailable | SinkRefused>
  readonly #found = new Map<number, Aside>()
  #next = 0
  #dropped = 0

  constructor(write: (count: Count) => Effect.Effect<unknown, SinkUnavailable | SinkRefused>) {
    this.#write = write
  }

  add(count: Count, problem: string): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const offset = this.#next++
      const setAsideAtMillis = yield* Clock.currentTimeMillis
      const bytes = JSON.stringify(count).length
      this.#found.set(offset, {
        about: { offset, appendedAtMillis: setAsideAtMillis, setAsideAtMillis, problem, bytes },
        count
      })
      yield* Effect.logWarning("a request count was set aside, and the others go on", { ...count, problem })
      const [oldest] = this.#found.keys()
      if (this.#found.size <= asideMax || oldest === undefined) return
      this.#found.delete(oldest)
      this.#dropped++
      yield* Effect.logError("the quarantine of request counts is full, and its oldest one is lost")
    })
  }

  readonly quarantine: LogQuarantine = {
    list: () => Array.from(this.#found.values(), ({ about }) => about),
    stats: () => ({
      records: this.#found.size,
      bytes: Array.from(this.#found.values()).reduce((sum, { about }) => sum + about.bytes, 0),
      dropped: this.#dropped
    }),
    retry: (offset) =>
      Effect.gen({ self: this }, function* () {
        const found = this.#found.get(offset)
        if (found === undefined) return yield* new NotSetAside({ offset })
        // Taken out before it is written: two concurrent retries must not count it twice.
        this.#found.delete(offset)
        yield* Effect.onError(this.#write(found.count), () =>
          Effect.sync(() => this.#found.set(offset, found))
        )
      }),
    drop: (offset) =>
      Effect.suspend(() =>
        this.#found.delete(offset) ? Effect.void : Effect.fail(new NotSetAside({ offset }))
      )
  }
}
