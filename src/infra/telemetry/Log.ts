import { Cause, Layer, Logger, type LogLevel, References } from "effect"

type LogFormat = "text" | "json"

/** `auto`: JSON wherever a program may read along, which is everywhere but on a terminal. */
export const formatOf = (format: LogFormat | "auto"): LogFormat =>
  format === "auto" ? (process.stdout.isTTY === true ? "text" : "json") : format

/**
 * One JSON object per line on standard output, or for a person one line of words each: `time`, `level`, `message`, the
 * line's annotations (`requestId` above all), and `cause`. Texts of callers (paths, headers) are values in it and are
 * escaped, so that no caller can write a line of their own into the log.
 */
export const layer = (
  minimum: LogLevel.LogLevel,
  write: (line: string) => void = (line) => void process.stdout.write(line),
  format: LogFormat = "json"
) =>
  Layer.merge(
    Logger.layer([Logger.make((entry) => write(`${format === "json" ? lineOf(entry) : wordsOf(entry)}\n`))]),
    Layer.succeed(References.MinimumLogLevel, minimum)
  )

/** A line of words: time, level, message, then what it was annotated with; a cause stands below it, line by line. */
const wordsOf = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): string => {
  const parts = Array.isArray(message) ? message : [message]
  const annotations = Object.entries(plain(fiber.getRef(References.CurrentLogAnnotations)))
  const line = [
    date.toISOString().slice(11, 23),
    logLevel.toUpperCase().padEnd(5),
    oneLine(parts.map(textOf).join(" ")),
    ...annotations.map(([name, value]) => oneLine(`${name}=${String(value)}`))
  ].join(" ")
  const below = cause.reasons.length === 0 ? [] : Cause.pretty(cause).split("\n")
  return [line, ...below.map((text) => `  ${oneLine(text)}`)].join("\n")
}

/** Text of callers must not end a line, or steer the terminal: it is escaped as JSON escapes it. */
const oneLine = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  escaped(text.replace(/[\u0000-\u001f]/g, (c) => JSON.stringify(c).slice(1, -1)))

/** A line in the log's own form, for messages at any log level. */
export const jsonLine = (message: string, more: Readonly<Record<string, string>> = {}): string =>
  escaped(JSON.stringify({ ...more, time: new Date().toISOString(), level: "info", message }))

const lineOf = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): string => {
  const parts = Array.isArray(message) ? message : [message]
  return escaped(
    JSON.stringify({
      ...plain(fiber.getRef(References.CurrentLogAnnotations)),
      time: date.toISOString(),
      level: logLevel.toLowerCase(),
      message: parts.map(textOf).join(" "),
      ...(cause.reasons.length > 0 ? { cause: Cause.pretty(cause) } : {})
    })
  )
}

const plain = (annotations: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [
      key,
      typeof value === "number" || typeof value === "boolean" ? value : textOf(value)
    ])
  )

const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value instanceof Error) return value.stack ?? value.message
  return jsonOf(value)
}

/** A log line must never be the thing that fails, with any value (cycles, big integers). */
const jsonOf = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

/** JSON leaves DEL, C1 controls and the two Unicode line separators as they are; terminals and viewers act on them. */
const escaped = (json: string): string =>
  // oxlint-disable-next-line no-control-regex
  json.replace(/[\u007f-\u009f\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
