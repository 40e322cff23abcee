import { headerBytes, recordHeaderBytes, type Frame } from "./Frame.ts"

export interface LogRecord {
  readonly offset: number
  /** wall clock of the group commit: for information, never for ages (clocks jump) */
  readonly appendedAtMillis: number
  /** a view into the bytes that were read: copy it to keep it for long */
  readonly payload: Uint8Array
}

/** Records gathered up to two limits; one record always fits, however large. */
export interface RecordBatch {
  readonly records: Array<LogRecord>
  readonly maxRecords: number
  readonly maxBytes: number
  bytes: number
  full: boolean
}

export const emptyBatch = (maxRecords: number, maxBytes: number): RecordBatch => ({
  records: [],
  maxRecords,
  maxBytes,
  bytes: 0,
  full: maxRecords <= 0
})

/** Adds the frame's records from offset `from` on, until the batch is full. */
export const collect = (frame: Frame, from: number, into: RecordBatch): void => {
  const view = new DataView(frame.bytes.buffer, frame.bytes.byteOffset, frame.bytes.byteLength)
  let at = headerBytes
  for (let i = 0; i < frame.count && !into.full; i++) {
    const length = view.getUint32(at, true)
    const start = at + recordHeaderBytes
    at = start + length
    const offset = frame.baseOffset + i
    if (offset < from) continue
    if (into.records.length > 0 && into.bytes + length > into.maxBytes) {
      into.full = true
      return
    }
    const payload = frame.bytes.subarray(start, at)
    into.records.push({ offset, appendedAtMillis: frame.appendedAtMillis, payload })
    into.bytes += length
    into.full = into.records.length >= into.maxRecords || into.bytes >= into.maxBytes
  }
}
