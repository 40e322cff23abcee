import type { LogRecord } from "./LogRecord.ts"

/** Records of a log in one piece of memory, which goes to another thread without being copied once more. */

/** Offset and instant as doubles, length of the payload. */
const headBytes = 8 + 8 + 4

export const packed = (records: ReadonlyArray<LogRecord>): Uint8Array<ArrayBuffer> => {
  const size = records.reduce((sum, { payload }) => sum + headBytes + payload.length, 0)
  // Not from Node's pool, of which parts cannot be given away.
  const bytes = new Uint8Array(size)
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const { appendedAtMillis, offset, payload } of records) {
    view.setFloat64(at, offset)
    view.setFloat64(at + 8, appendedAtMillis)
    view.setUint32(at + 16, payload.length)
    bytes.set(payload, at + headBytes)
    at += headBytes + payload.length
  }
  return bytes
}

/** Payloads are views into the block. */
export const unpacked = (block: Uint8Array): ReadonlyArray<LogRecord> => {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength)
  const records: Array<LogRecord> = []
  for (let at = 0; at < block.length;) {
    const begin = at + headBytes
    const end = begin + view.getUint32(at + 16)
    records.push({
      offset: view.getFloat64(at),
      appendedAtMillis: view.getFloat64(at + 8),
      payload: block.subarray(begin, end)
    })
    at = end
  }
  return records
}
