/** A row of CSV. */
interface CsvRow {
  /** its first line, counted from 1 */
  readonly line: number
  readonly cells: ReadonlyArray<string>
}

interface CsvRows {
  readonly rows: ReadonlyArray<CsvRow>
  /** that of a cell with a quotation mark where none may be; the rows are those before it */
  readonly faultyLine: number | undefined
}

/** A cell up to what ends it: quoted, with quotes doubled, or plain. */
const cell = /(?:"([^"]*(?:""[^"]*)*)"|([^,"\r\n]*))(,|\r\n|\r|\n|$)/y

/** Rows as RFC 4180 writes them; lines may also end with LF or CR alone, and empty ones count for nothing. */
export const csvRows = (text: string): CsvRows => {
  const rows: Array<CsvRow> = []
  let cells: Array<string> = []
  let line = 1
  let first = 1
  cell.lastIndex = text.startsWith("\uFEFF") ? 1 : 0
  while (cell.lastIndex < text.length || cells.length > 0) {
    const found = cell.exec(text)
    if (found === null) return { rows, faultyLine: line }
    const [, quoted, plain = "", end = ""] = found
    cells.push(quoted?.replaceAll('""', '"') ?? plain)
    line += quoted?.match(/\r\n|\r|\n/g)?.length ?? 0
    if (end === ",") continue
    if (cells.some((one) => one !== "")) rows.push({ line: first, cells })
    cells = []
    line++
    first = line
  }
  return { rows, faultyLine: undefined }
}
