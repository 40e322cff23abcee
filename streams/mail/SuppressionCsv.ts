import { Result, Schema } from "effect"
import { fieldFault } from "#schemas/core/FieldFault.ts"
import { SuppressionOfCsv } from "#schemas/mail/Suppression.ts"
import { csvRows } from "./CsvRows.ts"
import { notAnAddress, suppressionPatternOf, type SuppressionReason } from "./SuppressionPattern.ts"

/** A suppression that is to be kept. */
export interface AddedSuppression {
  /** as `suppressionPatternOf` makes it */
  readonly pattern: string
  readonly reason: SuppressionReason
  readonly note: string | null
}

interface RowFault {
  /** counted from 1 */
  readonly line: number
  readonly error: string
}

export interface SuppressionsOfCsv {
  readonly suppressions: ReadonlyArray<AddedSuppression>
  readonly faults: ReadonlyArray<RowFault>
}

const decode = Schema.decodeUnknownResult(SuppressionOfCsv)

/** An export writes it before cells that a spreadsheet would take for a formula. */
const apostrophe = /^'(?=[=+\-@])/

type Column = "address" | "reason" | "note"
type Columns = Readonly<Record<Column, number>>

/** Of the first row, where it names columns; undefined: it is a row like the others. */
const columnsOf = (cells: ReadonlyArray<string>): Columns | undefined => {
  const names = cells.map((name) => name.trim().toLowerCase())
  const [address, email] = [names.indexOf("address"), names.indexOf("email")]
  if (address < 0 && email < 0) return undefined
  return {
    address: address < 0 ? email : address,
    reason: names.indexOf("reason"),
    note: names.indexOf("note")
  }
}

const readRow = (columns: Columns, cells: ReadonlyArray<string>): Result.Result<AddedSuppression, string> => {
  const cell = (column: Column): string => (cells[columns[column]] ?? "").trim().replace(apostrophe, "")
  const reason = cell("reason")
  const read = decode({
    address: cell("address"),
    reason: reason === "" ? "manual" : reason,
    note: cell("note")
  })
  if (Result.isFailure(read)) {
    const { field, text } = fieldFault({ cause: read.failure })
    return Result.fail(`${field}: ${text}`)
  }
  const { address, note, reason: known } = read.success
  const pattern = suppressionPatternOf(address)
  return pattern === undefined
    ? Result.fail(`address: ${notAnAddress(address)}`)
    : Result.succeed({ pattern, reason: known, note: note === "" ? null : note })
}

/**
 * Suppressions of a CSV file, and the rows that are none. The first row may name its columns: `address` or `email`,
 * `reason`, `note`. Undefined: more than `rowsMax` rows. A fault in the form of the CSV is one of its line, and ends the reading.
 */
export const readSuppressions = (text: string, rowsMax: number): SuppressionsOfCsv | undefined => {
  const { faultyLine, rows } = csvRows(text)
  const named = columnsOf(rows[0]?.cells ?? [])
  const columns = named ?? { address: 0, reason: -1, note: -1 }
  const all = named === undefined ? rows : rows.slice(1)
  if (all.length > rowsMax) return undefined
  const suppressions: Array<AddedSuppression> = []
  const faults: Array<RowFault> = []
  for (const { cells, line } of all) {
    const read = readRow(columns, cells)
    if (Result.isSuccess(read)) suppressions.push(read.success)
    else faults.push({ line, error: read.failure })
  }
  if (faultyLine !== undefined)
    faults.push({ line: faultyLine, error: "a quotation mark is not closed, or in the middle of a cell" })
  return { suppressions, faults }
}
