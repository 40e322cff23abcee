import { isWritable } from "./HeaderText.ts"

export type Header = readonly [name: string, value: string]

/**
 * Headers that many answers share, checked and put together once: to write a header costs as much as to check it, and an
 * answer of a short file has more of them than anything else.
 */
export class HeaderBlock {
  /** those that may be written */
  readonly headers: ReadonlyArray<Header>
  /** of the first; "" where there is none */
  readonly name: string
  /** the value of the first, and the lines of the others behind it, without the end of the last */
  readonly lines: Uint8Array

  constructor(headers: ReadonlyArray<Header>) {
    this.headers = headers.filter(([name, value]) => isWritable(name, value))
    this.name = this.headers[0]?.[0] ?? ""
    const text = this.headers.map(([name, value]) => `${name}: ${value}`).join("\r\n")
    this.lines = Buffer.from(text.slice(this.name.length + 2), "latin1")
  }
}

export type Headers = ReadonlyArray<Header | HeaderBlock>

/** All of them one by one. */
export const listed = (headers: Headers): ReadonlyArray<Header> =>
  headers.flatMap((header) => (header instanceof HeaderBlock ? header.headers : [header]))
