import { Clock, Effect, Random } from "effect"
import type { LogConsumer, LogRecord, LogUnavailable } from "./DurableLog.ts"
import { SinkUnavailable, type SinkBatch, type SinkRefused } from "./Sink.ts"
import type { SinkCalls } from "./SinkCalls.ts"

/** Records beside the suspect that are offered in one round: half of them the nearest, the others at random. */
const neighboursPerRound = 16

/** The range of a search for good neighbours: at most so many records and bytes behind the suspect. */
const neighbourhood = { maxRecords: 1000, maxBytes: 1024 * 1024 }

/**
 * Set aside at most so many in a row without a neighbour that the sink takes. An idle server must get rid of a bad
 * record with nothing else in the log; a sink that takes no record at all must not empty the log into the quarantine.
 */
const withoutNeighbourMax = 8

interface JudgementOptions {
  readonly consumer: LogConsumer
  readonly calls: SinkCalls
  /** the batch of records that were not written before */
  readonly batchOf: (record: LogRecord) => SinkBatch
  /** to be called before a record behind the suspect is offered: from now on the sink may hold what is below `to` */
  readonly begin: (to: number) => Effect.Effect<void, LogUnavailable>
}

/**
 * Decides whether a record that the sink refused alone is the culprit. It is only where the sink, right after the
 * refusal, is well: it answers, its tables are there (`check`), and it takes a record beside this one. Then it is asked
 * once more for this record. Anything else is treated as an outage: nothing is set aside, and all of it comes again.
 */
export class Judgement {
  readonly #options: JudgementOptions
  #withoutNeighbour = 0

  constructor(options: JudgementOptions) {
    this.#options = options
  }

  /** The sink has taken a batch as it was. */
  tookOne(): void {
    this.#withoutNeighbour = 0
  }

  /**
   * Undefined: the sink has taken the record after all. `tookBefore`: since a batch with this record was refused, the
   * sink took others of that batch.
   */
  of(
    suspect: SinkBatch,
    tookBefore: boolean
  ): Effect.Effect<SinkRefused | undefined, SinkUnavailable | LogUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const { calls } = this.#options
      const first = yield* calls.write(suspect)
      if (first === undefined) return undefined
      if (first.blames === "size") return yield* refusesAll(first, "one record is more than it can hold now")
      const well = yield* calls.check
      if (well !== undefined) return yield* refusesAll(well, "it takes nothing")
      const hasNeighbour = yield* this.#takesANeighbour(suspect)
      const isNamed = first.blames === "record" || tookBefore
      if (!hasNeighbour && !(isNamed && this.#withoutNeighbour < withoutNeighbourMax))
        return yield* refusesAll(first, "it takes no record beside the one that it refuses")
      const second = yield* calls.write(suspect)
      if (second !== undefined) this.#withoutNeighbour = hasNeighbour ? 0 : this.#withoutNeighbour + 1
      return second
    })
  }

  #takesANeighbour(suspect: SinkBatch): Effect.Effect<boolean, SinkUnavailable | LogUnavailable> {
    return Effect.gen({ self: this }, function* () {
      const { batchOf, begin, calls, consumer } = this.#options
      const records = yield* consumer.read({ from: suspect.to, ...neighbourhood })
      for (const record of yield* chosen(records)) {
        yield* begin(record.offset + 1)
        if ((yield* calls.write({ ...batchOf(record), outOfTurn: true })) === undefined) return true
      }
      return false
    })
  }
}

const chosen = Effect.fnUntraced(function* (records: ReadonlyArray<LogRecord>) {
  const nearest = records.slice(0, neighboursPerRound / 2)
  const further = records.slice(nearest.length)
  const picked = new Set<LogRecord>(nearest)
  for (let at = 0; at < neighboursPerRound / 2 && further.length > 0; at++) {
    const record = further[yield* Random.nextIntBetween(0, further.length - 1)]
    if (record !== undefined) picked.add(record)
  }
  return picked
})

const refusesAll = ({ cause, problem }: SinkRefused, why: string): Effect.Effect<never, SinkUnavailable> =>
  Effect.fail(new SinkUnavailable({ problem: `${why}: ${problem}`, cause, reason: "refuses" }))

/** Sets a record aside that was found to be the culprit. */
export const setAside = Effect.fnUntraced(function* (
  name: string,
  consumer: LogConsumer,
  record: LogRecord,
  { problem }: SinkRefused
) {
  const setAsideAtMillis = yield* Clock.currentTimeMillis
  yield* consumer.quarantine.add(record, { problem, setAsideAtMillis })
  yield* Effect.logWarning(`${name}: a record was set aside, and the others go on`, {
    offset: record.offset,
    bytes: record.payload.length,
    problem
  })
})
