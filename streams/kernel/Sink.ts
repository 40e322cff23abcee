import { Schema, type Effect } from "effect"
import type { LogRecord } from "./DurableLog.ts"

/** The sink did not confirm the batch: it may have been written wholly, in part, or not at all. */
export class SinkUnavailable extends Schema.TaggedError<SinkUnavailable>()("SinkUnavailable", {
  problem: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `the sink is unavailable: ${this.problem}`
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
   * true when a crash left these offsets uncertain: ask which are present and write only the missing ones, without
   * the token. The crashed process's own write may still be under way in the store: rule that out first
   */
  readonly recovering: boolean
}

export interface Sink {
  /**
   * Writes the whole batch or fails; retried with the same batch until it succeeds. A defect counts as a failure.
   * A call may be interrupted at any point and repeated.
   */
  readonly write: (batch: SinkBatch) => Effect.Effect<void, SinkUnavailable>
}
