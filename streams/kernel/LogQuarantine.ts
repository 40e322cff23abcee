import { Effect, Schema } from "effect"
import type { LogConsumer, LogRecord, LogUnavailable } from "./DurableLog.ts"
import type { QuarantineStats, SetAside } from "./Quarantine.ts"
import type { SinkBatch, SinkRefused, SinkUnavailable } from "./Sink.ts"
import type { SinkCalls } from "./SinkCalls.ts"
import type { Trouble } from "./Trouble.ts"

/** There is no such record in the quarantine. */
export class NotSetAside extends Schema.TaggedError<NotSetAside>()("NotSetAside", {
  offset: Schema.Number
}) {
  override get message(): string {
    return `the record ${this.offset} is not set aside`
  }
}

/** The operations on the records that a consumer has set aside. */
export interface LogQuarantine {
  readonly list: () => ReadonlyArray<SetAside>
  readonly stats: () => QuarantineStats
  /**
   * Offers the record to the sink again, and forgets it once the sink has it. It is written exactly once: the sink is
   * asked whether it has it, as after a crash, so that a crash before it is forgotten changes nothing.
   */
  readonly retry: (
    offset: number
  ) => Effect.Effect<void, NotSetAside | SinkUnavailable | SinkRefused | LogUnavailable>
  /** Gives the record up for good. */
  readonly drop: (offset: number) => Effect.Effect<void, NotSetAside | LogUnavailable>
}

interface LogQuarantineOptions {
  readonly consumer: LogConsumer
  readonly calls: SinkCalls
  readonly batchOf: (record: LogRecord) => SinkBatch
  readonly trouble: Trouble
}

export const quarantineOf = ({ batchOf, calls, consumer, trouble }: LogQuarantineOptions): LogQuarantine => {
  const { quarantine } = consumer
  return {
    list: quarantine.list,
    stats: quarantine.stats,
    retry: Effect.fnUntraced(function* (offset) {
      const record = yield* quarantine.read(offset)
      if (record === undefined) return yield* new NotSetAside({ offset })
      // A batch that waits to be repeated comes first: the sink expects that very batch.
      if (trouble.current !== undefined) return yield* trouble.current
      const refused = yield* calls.write({ ...batchOf(record), outOfTurn: true })
      if (refused !== undefined) return yield* refused
      yield* quarantine.remove(offset)
    }),
    drop: Effect.fnUntraced(function* (offset) {
      if (!(yield* quarantine.remove(offset))) return yield* new NotSetAside({ offset })
    })
  }
}
