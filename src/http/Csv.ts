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
  return /[",;|\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/**
 * The places where a spreadsheet begins a formula: at the start, and behind characters that some read as a cell's end,
 * with blanks and quotes between. In full width they count as much as in half (OWASP, CSV Injection).
 */
const formula = /(^|\r\n|[;|\t\r\n])([ "\u00a0\u3000\ufeff]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/gu

/** Visitors' text must not become a formula in a spreadsheet. */
const harmless = (text: string): string =>
  (/^[\t\r]/.test(text) ? `'${text}` : text).replace(formula, "$1'$2")
