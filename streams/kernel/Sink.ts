import { Schema, type Effect } from "effect"
import type { LogRecord } from "./DurableLog.ts"

/** The sink did not confirm the batch: it may have been written wholly, in part, or not at all. */
export class SinkUnavailable extends Schema.TaggedError<SinkUnavailable>()("SinkUnavailable", {
  problem: Schema.String,
  cause: Schema.Defect(),
  /**
   * Absent: it is away (no connection, no answer, shutting down, no room). `refuses`: it answers, and takes nothing
   * that it is given. `behind`: more lies before than it takes in the time of a reader
   */
  reason: Schema.optionalKey(Schema.Literals(["refuses", "behind"]))
}) {
  override get message(): string {
    return `the sink is unavailable: ${this.problem}`
  }
}

/**
 * The sink looked at the batch and did not take it, for a reason that may lie in its records. An outage is never this: a
 * lost connection, a deadline, a store that stops or has no room are SinkUnavailable, and the batch comes again as it is.
 * `blames` says what the store's own answer points at. `record`: a value that it cannot hold. `size`: more at once than
 * its memory or its time allows, so fewer may do. `unknown`: anything else, such as a missing table.
 */
export class SinkRefused extends Schema.TaggedError<SinkRefused>()("SinkRefused", {
  problem: Schema.String,
  cause: Schema.Defect(),
  blames: Schema.Literals(["record", "size", "unknown"])
}) {
  override get message(): string {
    return `the sink refuses: ${this.problem}`
  }
}

/** The records [from, to) of one log, without a gap. */
export interface SinkBatch {
  readonly logId: bigint
  readonly from: number
  readonly to: number
  readonly records: ReadonlyArray<LogRecord>
  /**
   * `<log id>:<from>-<to>`, the same for the same rows as long as this process runs. Never to be relied on across a
   * restart: the batch after a crash may hold other rows under a token that the store still remembers.
   */
  readonly token: string
  /**
   * true when a crash, or a larger batch that was refused, left these offsets uncertain: ask which are present and write
   * only the missing ones, without the token. The crashed process's own write may still be under way in the store: rule
   * that out first
   */
  readonly recovering: boolean
  /**
   * Records before these may be missing, or records behind these be there: a sink that remembers how far it is must
   * neither rely on that mark nor move it. Such a batch is `recovering` too. Default false
   */
  readonly outOfTurn?: boolean
}

export interface Sink {
  /**
   * Writes the whole batch or fails. After SinkUnavailable the same batch comes again until it succeeds, unless it is
   * `recovering`: then others may come before. After SinkRefused its parts come, `recovering`, and a record that is
   * refused alone is set aside. A defect is a refusal. A call may be interrupted at any point and repeated.
   */
  readonly write: (batch: SinkBatch) => Effect.Effect<void, SinkUnavailable | SinkRefused>
  /** Writes nothing, and fails where a batch of any records would: a missing table, column or permission. */
  readonly check: Effect.Effect<void, SinkUnavailable | SinkRefused>
}
