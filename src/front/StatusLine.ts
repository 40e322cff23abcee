import { STATUS_CODES } from "node:http"

const lines: Array<string> = Array.from(
  { length: 600 },
  (_, status) => `${status} ${STATUS_CODES[status] ?? "Unknown"}`
)

/** "202 Accepted"; with a text of the app's own where it gave one that is safe to write. */
export const statusLine = (status: number, text?: string): string =>
  text === undefined || !/^[\t\x20-\x7e]*$/.test(text)
    ? (lines[status] ?? "500 Internal Server Error")
    : `${status} ${text}`

/** A 1xx is not an answer, and anything outside 200-599 is none that a client understands. */
export const isFinalStatus = (status: number): boolean =>
  Number.isInteger(status) && status >= 200 && status <= 599
