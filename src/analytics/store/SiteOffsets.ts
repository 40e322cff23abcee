import { Effect, Semaphore } from "effect"
import type { DurableLog, LogConsumer, LogUnavailable } from "#streams/kernel/DurableLog.ts"

interface SiteOffsetsOptions {
  readonly log: DurableLog
  readonly consumer: LogConsumer
  /** Throws on a record that it cannot read. */
  readonly siteOf: (record: Uint8Array) => string
  readonly sitesMax: number
}

/** A part of the log that is looked through without a pause: a few milliseconds. */
const step = { maxRecords: 5_000, maxBytes: 2 * 1024 * 1024 }

/**
 * The end of each site's records in a log, as far as its consumer has not committed them. Found by a scan of the
 * records since the last query, so that ingest pays nothing for it and a restart finds what its predecessor left.
 */
export class SiteOffsets {
  readonly #options: SiteOffsetsOptions
  readonly #ends = new Map<string, number>()
  readonly #oneAtATime = Semaphore.makeUnsafe(1)
  #seenTo = 0

  constructor(options: SiteOffsetsOptions) {
    this.#options = options
  }

  /** Every durable record of the site lies below it; 0 where none is left to commit. */
  endOf(site: string): Effect.Effect<number, LogUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const { consumer, log } = this.#options
      const to = log.durableOffset()
      if (to <= consumer.committed()) return 0
      yield* this.#oneAtATime.withPermits(1)(this.#lookTo(to))
      return this.#ends.get(site) ?? 0
    })
  }

  #lookTo(to: number): Effect.Effect<void, LogUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const { consumer } = this.#options
      for (;;) {
        const from = Math.max(this.#seenTo, consumer.committed())
        if (from >= to) return
        const records = yield* consumer.read({ from, ...step }).pipe(
          // Its file went away meanwhile, because the consumer has it all.
          Effect.catch((error) => (consumer.committed() > from ? Effect.undefined : Effect.fail(error)))
        )
        if (records === undefined) continue
        for (const { offset, payload } of records) this.#note(payload, offset + 1)
        this.#seenTo = from + records.length
        yield* Effect.yieldNow
      }
    })
  }

  #note(payload: Uint8Array, end: number): void {
    const { consumer, siteOf, sitesMax } = this.#options
    let site: string
    try {
      site = siteOf(payload)
    } catch {
      // A damaged record is no site's; the sink trips over it too, and says so.
      return
    }
    this.#ends.set(site, end)
    if (this.#ends.size <= sitesMax) return
    for (const [known, written] of this.#ends) if (written <= consumer.committed()) this.#ends.delete(known)
  }
}
