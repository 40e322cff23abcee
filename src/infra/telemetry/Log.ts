import { Cause, Layer, Logger, type LogLevel, References } from "effect"

/**
 * One JSON object per line on standard output: `time`, `level`, `message`, what the line was annotated with
 * (`requestId` above all), and `cause`. Texts of callers (paths, headers) are values in it and are escaped, so that
 * nobody can write a line of their own into the log.
 */
export const layer = (
  minimum: LogLevel.LogLevel,
  write: (line: string) => void = (line) => void process.stdout.write(line)
) =>
  Layer.merge(
    Logger.layer([Logger.make((entry) => write(`${lineOf(entry)}\n`))]),
    Layer.succeed(References.MinimumLogLevel, minimum)
  )

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

/** A log line must never be the thing that fails, whatever it was given (cycles, big integers). */
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
