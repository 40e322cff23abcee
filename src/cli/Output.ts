import { Console, Effect } from "effect"
import { Flag } from "effect/cli"

/** `--json` prints the server's answer, for other programs. */
export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON for other programs"),
  Flag.withDefault(false)
)

type Row = Readonly<Record<string, unknown>>

// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f]/g

/** One value of a table. Names given by others must not steer the terminal. */
const cell = (value: unknown): string => {
  if (value === null || value === undefined) return "-"
  if (value instanceof Date) return value.toISOString()
  return (typeof value === "string" ? value : JSON.stringify(value)).replace(controls, "\ufffd")
}

/** `firstEventAt` and `first_event_at` are FIRST EVENT AT. */
const headingOf = (column: string): string =>
  column
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toUpperCase()

/** Rows under their headings, columns as wide as their longest value. */
export const tableOf = (columns: ReadonlyArray<string>, rows: ReadonlyArray<Row>): string => {
  const lines = [columns.map(headingOf), ...rows.map((row) => columns.map((_) => cell(row[_])))]
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((text, index) => text.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Prints an answer: as it is with `--json`, else in the words given. */
export const show = <A>(isJson: boolean, answer: A, words: (answer: A) => string): Effect.Effect<void> =>
  Console.log(isJson ? JSON.stringify(answer, null, 2) : words(answer))
