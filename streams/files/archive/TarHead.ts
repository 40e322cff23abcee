/**
 * The headers of an entry in a tar archive: ustar, with a pax header before it where that cannot say it. Source: POSIX.1-2024,
 * pax, "ustar Interchange Format" and "pax Extended Header".
 */

/** Everything in a tar archive begins at a multiple of it. */
export const tarBlock = 512

/** Bytes behind the last entry: two blocks of zeros. */
export const tarEndBytes = 2 * tarBlock

export interface TarEntry {
  /** with "/" between names; of a directory also at its end */
  readonly path: string
  /** 0 of a directory */
  readonly sizeBytes: number
  /** since 1970, whole ones; may be negative */
  readonly modifiedSeconds: number
}

/** Zeros behind so many bytes of a file. */
export const tarPadding = (sizeBytes: number): number => (tarBlock - (sizeBytes % tarBlock)) % tarBlock

const nameBytes = 100
const prefixBytes = 155

/** The fields are eleven octal digits; what needs more is above this. */
const octalMost = 8 ** 11 - 1

const encoder = new TextEncoder()

/** The headers of an entry, padded: its content follows. */
export const tarHead = ({ modifiedSeconds, path, sizeBytes }: TarEntry): Buffer => {
  const bytes = Buffer.from(path)
  const place = placeOf(bytes)
  // Of ASCII alone each character is one byte.
  const isFit = place !== undefined && bytes.length === path.length
  const records: Array<string> = []
  if (!isFit) records.push(paxRecord("path", path))
  if (sizeBytes > octalMost) records.push(paxRecord("size", String(sizeBytes)))
  if (modifiedSeconds < 0 || modifiedSeconds > octalMost)
    records.push(paxRecord("mtime", String(modifiedSeconds)))
  const shown = place ?? { prefix: 0, name: bytes.subarray(0, fittingBytes(bytes)) }
  const mode = path.endsWith("/") ? 0o755 : 0o644
  const type = path.endsWith("/") ? "5" : "0"
  const head = headerBlock(bytes, shown, { type, mode, sizeBytes, modifiedSeconds })
  if (records.length === 0) return head
  const pax = encoder.encode(records.join(""))
  const paxName = Buffer.concat([Buffer.from("PaxHeaders/"), shown.name]).subarray(0, nameBytes)
  const paxHead = headerBlock(
    paxName,
    { prefix: 0, name: paxName.subarray(0, fittingBytes(paxName)) },
    { type: "x", mode: 0o644, sizeBytes: pax.length, modifiedSeconds }
  )
  return Buffer.concat([paxHead, pax, Buffer.alloc(tarPadding(pax.length)), head])
}

/** `prefix`: how many bytes of the path are in the field before the name, the "/" between them aside. */
interface Place {
  readonly prefix: number
  readonly name: Uint8Array
}

/** Where a path is in the two fields; undefined: it does not fit. */
const placeOf = (path: Buffer): Place | undefined => {
  if (path.length <= nameBytes) return { prefix: 0, name: path }
  // The name field of a directory must not be its "/" alone.
  const slash = path.indexOf("/", path.length - nameBytes - 1)
  const isSplit = slash > 0 && slash <= prefixBytes && slash < path.length - 1
  return isSplit ? { prefix: slash, name: path.subarray(slash + 1) } : undefined
}

/** As many bytes as fit into the name field without half a character. */
const fittingBytes = (path: Uint8Array): number => {
  let end = Math.min(path.length, nameBytes)
  while (end < path.length && end > 0 && ((path[end] ?? 0) & 0xc0) === 0x80) end--
  return end
}

interface Fields {
  readonly type: string
  readonly mode: number
  readonly sizeBytes: number
  readonly modifiedSeconds: number
}

/** The fields that all headers share; those of the others are zeros. */
const commonBlock = (): Buffer => {
  const block = Buffer.alloc(tarBlock)
  // User and group: 0.
  octal(block, 108, 8, 0)
  octal(block, 116, 8, 0)
  // The sum counts its own field as spaces.
  block.fill(" ", 148, 156)
  block.write("ustar\u000000", 257, "latin1")
  octal(block, 329, 8, 0)
  octal(block, 337, 8, 0)
  return block
}

const sumOf = (block: Buffer, from: number, to: number): number => {
  let sum = 0
  for (let at = from; at < to; at++) sum += block[at] ?? 0
  return sum
}

const headerBlock = (path: Uint8Array, { name, prefix }: Place, fields: Fields): Buffer => {
  const block = Buffer.from(common)
  block.set(name, 0)
  octal(block, 100, 8, fields.mode)
  number(block, 124, fields.sizeBytes)
  number(block, 136, Math.max(fields.modifiedSeconds, 0))
  block.write(fields.type, 156, "latin1")
  if (prefix > 0) block.set(path.subarray(0, prefix), 345)
  const sum =
    commonSum +
    sumOf(block, 0, name.length) +
    sumOf(block, 100, 108) +
    sumOf(block, 124, 148) +
    sumOf(block, 156, 157) +
    sumOf(block, 345, 345 + prefix)
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1")
  return block
}

const octal = (block: Buffer, at: number, width: number, value: number): void => {
  block.write(value.toString(8).padStart(width - 1, "0"), at, "latin1")
}

/** A field of twelve bytes. Of what eleven octal digits cannot say all readers but POSIX's take 95 bits behind a set one. */
const number = (block: Buffer, at: number, value: number): void => {
  if (value <= octalMost) return octal(block, at, 12, value)
  block[at] = 0x80
  block.writeBigUInt64BE(BigInt(value), at + 4)
}

/** "LENGTH KEY=VALUE\n", where the length counts itself. */
const paxRecord = (key: string, value: string): string => {
  const rest = ` ${key}=${value}\n`
  const bytes = Buffer.byteLength(rest)
  let length = bytes + 1
  while (bytes + String(length).length > length) length = bytes + String(length).length
  return `${length}${rest}`
}

const common = commonBlock()
const commonSum = sumOf(common, 0, tarBlock)
