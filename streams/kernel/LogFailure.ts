import { Schema } from "effect"

/** The byte cap is reached, or the disk is behind by more than one whole batch: the caller answers 429. */
export class LogFull extends Schema.TaggedError<LogFull>()("LogFull", { retryAfterSeconds: Schema.Number }) {}

/**
 * The record is not in the log. `disk_full` and `io` pass by themselves once the disk takes writes again
 * (507, 503); `closed` does not. A record refused after its write was begun may still be found there after a
 * crash: the answer "unavailable" says "not promised", never "surely absent".
 */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  reason: Schema.Literals(["disk_full", "io", "closed"]),
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `the log takes no records (${this.reason})`
  }
}

/**
 * The files contradict themselves where a crash cannot be the cause. The log refuses to open rather than lose records
 * silently; `position` is the byte in `file` of the contradiction.
 */
export class LogCorrupt extends Schema.TaggedError<LogCorrupt>()("LogCorrupt", {
  file: Schema.String,
  position: Schema.Number,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.file} is damaged at byte ${this.position}: ${this.problem}`
  }
}

/** Another live process, or another part of this one, has the directory open. */
export class LogLocked extends Schema.TaggedError<LogLocked>()("LogLocked", {
  directory: Schema.String,
  holder: Schema.String
}) {
  override get message(): string {
    return `${this.directory} is in use by process ${this.holder}`
  }
}

/** A file operation failed; `code` is the operating system's (`ENOSPC`, `EIO`, `ENOENT`, …). */
export class FileFailed extends Schema.TaggedError<FileFailed>()("FileFailed", {
  operation: Schema.String,
  path: Schema.String,
  code: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `${this.operation} ${this.path}: ${this.code}`
  }
}

/** A failed file operation as the error of the log. */
export const unavailable = (cause: FileFailed): LogUnavailable =>
  new LogUnavailable({
    reason: cause.code === "ENOSPC" || cause.code === "EDQUOT" ? "disk_full" : "io",
    cause
  })
