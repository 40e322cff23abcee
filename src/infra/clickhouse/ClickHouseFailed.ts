import { ClickHouseError } from "@clickhouse/client"
import { Schema } from "effect"

/** ClickHouse did not answer, or cannot now: asking again later may succeed. Of an insert nothing is known. */
export class ClickHouseUnavailable extends Schema.TaggedError<ClickHouseUnavailable>()(
  "ClickHouseUnavailable",
  {
    problem: Schema.String,
    cause: Schema.Defect(),
    /** of system.errors, where it answered at all */
    code: Schema.optionalKey(Schema.Number)
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

/** Codes of system.errors that speak of now (memory, disk, load, time), not of the statement. */
const passing = new Set([
  74, 75, 76, 159, 160, 164, 198, 202, 203, 209, 210, 236, 241, 242, 243, 252, 279, 394, 425, 999, 1001
])

/** The failure that an error of the client means. */
export const failureOf = (error: unknown): ClickHouseUnavailable | ClickHouseFailed => {
  const problem = error instanceof Error ? error.message : String(error)
  const { code, name } = answerOf(error, problem)
  if (code === undefined) return new ClickHouseUnavailable({ problem, cause: error })
  return passing.has(code)
    ? new ClickHouseUnavailable({ problem: `${problem} (${code} ${name})`, cause: error, code })
    : new ClickHouseFailed({ code, name, problem })
}

/** The text of ClickHouse's answer: the client's error or, after the status line, the answer's body. */
const answerOf = (
  error: unknown,
  problem: string
): { readonly code: number | undefined; readonly name: string } => {
  if (error instanceof ClickHouseError) return { code: Number(error.code), name: error.type ?? "" }
  const [, code, name] = /Code: (\d+)\. DB::Exception:.*?(?:\(([A-Z_]+)\) \(version|$)/s.exec(problem) ?? []
  return { code: code === undefined ? undefined : Number(code), name: name ?? "" }
}

/** Was the connection refused or cut, rather than the statement answered with an error, or never? */
export const isLostConnection = (error: ClickHouseUnavailable | ClickHouseFailed): boolean =>
  error._tag === "ClickHouseUnavailable" &&
  error.cause instanceof Error &&
  "code" in error.cause &&
  /^E[A-Z]+$/.test(String(error.cause.code))
