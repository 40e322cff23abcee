import { Schema } from "effect"

/** The embedded PostgreSQL could not be set up or started; `problem` says what to do where something can be done. */
export class PostgresFailed extends Schema.TaggedError<PostgresFailed>()("PostgresFailed", {
  problem: Schema.String,
  /** the last lines it wrote */
  output: Schema.String
}) {
  override get message(): string {
    return this.output === "" ? this.problem : `${this.problem}\n${this.output}`
  }
}

/** Another server process uses the same DATA_DIR. */
export class DataDirectoryInUse extends Schema.TaggedError<DataDirectoryInUse>()("DataDirectoryInUse", {
  directory: Schema.String,
  pid: Schema.Number
}) {
  override get message(): string {
    return `${this.directory} is in use by process ${this.pid}: stop it, or give this one another DATA_DIR`
  }
}
