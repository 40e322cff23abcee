/** Lines after RFC 4180: CRLF, and quotes where they are needed. */
export const csv = <Row extends object>(
  columns: ReadonlyArray<keyof Row & string>,
  rows: ReadonlyArray<Row>
): string =>
  [columns.join(","), ...rows.map((row) => columns.map((column) => cell(row[column])).join(","))]
    .map((line) => `${line}\r\n`)
    .join("")

/** null is an empty cell. */
const cell = (value: unknown): string => {
  if (typeof value === "number") return String(value)
  const text = harmless(typeof value === "string" ? value : "")
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** What visitors send must not become a formula in somebody's spreadsheet. */
const harmless = (text: string): string => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text)
