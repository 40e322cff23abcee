import { Schema } from "effect"

/** ClickHouse did not answer, or cannot now: asking again later may succeed. Of an insert nothing is known. */
export class ClickHouseUnavailable extends Schema.TaggedError<ClickHouseUnavailable>()(
  "ClickHouseUnavailable",
  {
    problem: Schema.String,
    cause: Schema.Defect()
  }
) {
  override get message(): string {
    return `ClickHouse is unavailable: ${this.problem}`
  }
}

/** ClickHouse refused the statement: asking again gives the same answer. */
export class ClickHouseFailed extends Schema.TaggedError<ClickHouseFailed>()("ClickHouseFailed", {
  /** of system.errors, e.g. 60 UNKNOWN_TABLE */
  code: Schema.Number,
  name: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `ClickHouse refused: ${this.problem} (${this.code} ${this.name})`
  }
}

/** The embedded ClickHouse could not be started. */
export class EmbeddedClickHouseFailed extends Schema.TaggedError<EmbeddedClickHouseFailed>()(
  "EmbeddedClickHouseFailed",
  { problem: Schema.String, output: Schema.String }
) {
  override get message(): string {
    return this.output === "" ? this.problem : `${this.problem}\n${this.output}`
  }
}
