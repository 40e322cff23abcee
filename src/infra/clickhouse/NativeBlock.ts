/** A column of a table: its name, and its type as ClickHouse declares it. */
interface Column {
  readonly name: string
  readonly type: string
}

/** Values of up to so many bytes are copied in place: a call into the runtime costs more. */
const shortBytes = 40

const widths: Readonly<Record<string, number>> = {
  UInt8: 1,
  Enum8: 1,
  UInt16: 2,
  Date: 2,
  UInt32: 4,
  UInt64: 8,
  Int64: 8
}

/** Bytes of each value; 0: a text, which says its length. */
const widthOf = (type: string): number => {
  if (type === "String") return 0
  const width = widths[type.replace(/\(.*/s, "")]
  if (width === undefined) throw new Error(`The type ${type} has no width here`)
  return width
}

/** The values of a column, one behind the other. */
class Values {
  #bytes = Buffer.allocUnsafe(1_024)
  #length = 0

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** The value of `rows` in [from, to). */
  copy(rows: Buffer, from: number, to: number): void {
    const length = to - from
    if (this.#length + length > this.#bytes.length) this.#grow(length)
    const bytes = this.#bytes
    const start = this.#length
    if (length > shortBytes) rows.copy(bytes, start, from, to)
    else for (let at = 0; at < length; at++) bytes[start + at] = rows[from + at] ?? 0
    this.#length = start + length
  }

  /** A UInt64 of at most 2^32. */
  number(value: number): void {
    if (this.#length + 8 > this.#bytes.length) this.#grow(8)
    this.#bytes.writeUInt32LE(value, this.#length)
    this.#length = this.#bytes.writeUInt32LE(0, this.#length + 4)
  }

  #grow(more: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + more))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

/** A column as it is gathered. Of an array: where each of its lists ends, counted in items, and the items behind that. */
class Gathered {
  readonly head: Buffer
  readonly width: number
  readonly ends: Values | undefined
  readonly values = new Values()
  items = 0

  constructor({ name, type }: Column) {
    // ClickHouse makes the dictionaries of a LowCardinality by itself.
    const sent = type.replaceAll("LowCardinality(String)", "String")
    const isArray = sent.startsWith("Array(")
    this.head = Buffer.concat([textOf(name), textOf(sent)])
    this.width = widthOf(isArray ? sent.slice("Array(".length, -1) : sent)
    this.ends = isArray ? new Values() : undefined
  }
}

/**
 * Whole rows in RowBinary as one block in Native, which has the same values column by column: ClickHouse copies columns
 * where it reads rows value by value (0007). Nothing is decoded, as a value has the same bytes in both. In parts.
 * Source: ClickHouse, formats Native and RowBinary.
 */
export const nativeBlock = (columns: ReadonlyArray<Column>, rows: Buffer): ReadonlyArray<Uint8Array> => {
  const gathered = columns.map((column) => new Gathered(column))
  let count = 0
  let at = 0
  for (; at < rows.length; count++) for (const column of gathered) at = gather(column, rows, at)
  if (at > rows.length) throw new Error("The last row ends within a value")
  return [
    Buffer.from([...varintOf(columns.length), ...varintOf(count)]),
    ...gathered.flatMap(({ ends, head, values }) =>
      ends === undefined ? [head, values.bytes] : [head, ends.bytes, values.bytes]
    )
  ]
}

/** Takes the column's value that begins at `from`; answers its end. */
const gather = (column: Gathered, rows: Buffer, from: number): number => {
  const { ends, values, width } = column
  if (ends === undefined) {
    const end = width > 0 ? from + width : endOfText(rows, from)
    values.copy(rows, from, end)
    return end
  }
  const first = endOfVarint(rows, from)
  const length = varintAt(rows, from, first)
  column.items += length
  ends.number(column.items)
  let end = first + length * width
  if (width === 0) for (let item = 0; item < length; item++) end = endOfText(rows, end)
  if (end > first) values.copy(rows, first, end)
  return end
}

const endOfVarint = (rows: Buffer, from: number): number => {
  let at = from
  while ((rows[at] ?? 0) >= 128) at++
  return at + 1
}

const varintAt = (rows: Buffer, from: number, end: number): number => {
  let value = 0
  for (let at = end - 1; at >= from; at--) value = value * 128 + ((rows[at] ?? 0) & 127)
  return value
}

const endOfText = (rows: Buffer, from: number): number => {
  const first = rows[from] ?? 0
  if (first < 128) return from + 1 + first
  const end = endOfVarint(rows, from)
  return end + varintAt(rows, from, end)
}

const varintOf = (value: number): ReadonlyArray<number> =>
  value < 128 ? [value] : [(value & 127) | 128, ...varintOf(Math.floor(value / 128))]

const textOf = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.from(varintOf(bytes.length)), bytes])
}
