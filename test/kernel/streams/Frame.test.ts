import { assert, describe, it } from "@effect/vitest"
import { crc32c } from "#streams/kernel/Crc32c.ts"
import { claimedBytes, frameAt, hasFrameAfter, headerBytes, putRecord, seal } from "#streams/kernel/Frame.ts"
import { collect, emptyBatch } from "#streams/kernel/LogRecord.ts"
import { LogCorrupt } from "#streams/kernel/LogFailure.ts"
import * as Segment from "#streams/kernel/Segment.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"

const text = (value: string): Uint8Array => Buffer.from(value, "latin1")
const logId = 0x1122334455667788n

const frameOf = (baseOffset: number, records: ReadonlyArray<string>): Uint8Array => {
  const bytes = new Uint8Array(records.reduce((sum, record) => sum + 4 + record.length, headerBytes))
  let at = headerBytes
  for (const record of records) at = putRecord(bytes, at, text(record))
  return seal(bytes, { logId, baseOffset, count: records.length, appendedAtMillis: 1700000000000 }).bytes
}

describe("CRC-32C", () => {
  it("gives the published check value and the vectors of RFC 3720", () => {
    const of = (bytes: Uint8Array): number => crc32c(bytes, 0, bytes.length)
    assert.strictEqual(of(text("123456789")), 0xe3069283)
    assert.strictEqual(of(new Uint8Array(32)), 0x8a9136aa)
    assert.strictEqual(of(new Uint8Array(32).fill(255)), 0x62a8ab43)
    assert.strictEqual(of(Uint8Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e)
  })

  it("is the same eight bytes at a time as bit by bit, at every length and alignment", () => {
    const random = new SeededRandom(1)
    const bytes = Uint8Array.from({ length: 64 }, () => random.below(256))
    for (let start = 0; start < 9; start++) {
      for (let end = start; end <= bytes.length; end++) {
        let crc = 0xffffffff
        for (let i = start; i < end; i++) {
          crc ^= bytes[i] ?? 0
          for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
        }
        assert.strictEqual(crc32c(bytes, start, end), ~crc >>> 0)
      }
    }
  })
})

describe("a frame", () => {
  it("gives back its records, offsets and time", () => {
    const frame = frameAt(frameOf(7, ["first", "", "third"]), 0, logId)
    assert.isDefined(frame)
    const batch = emptyBatch(10, 1000)
    if (frame !== undefined) collect(frame, 0, batch)
    assert.deepStrictEqual(
      batch.records.map((record) => [
        record.offset,
        Buffer.from(record.payload).toString(),
        record.appendedAtMillis
      ]),
      [
        [7, "first", 1700000000000],
        [8, "", 1700000000000],
        [9, "third", 1700000000000]
      ]
    )
  })

  it("is refused when any single bit of it differs", () => {
    const bytes = frameOf(0, ["some", "records"])
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = bytes.slice()
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      assert.isUndefined(frameAt(damaged, 0, logId), `bit ${bit}`)
    }
  })

  it("is refused when it belongs to another log, or is cut short anywhere", () => {
    const bytes = frameOf(0, ["a record"])
    assert.isUndefined(frameAt(bytes, 0, logId + 1n))
    for (let length = 0; length < bytes.length; length++) {
      assert.isUndefined(frameAt(bytes.subarray(0, length), 0, logId))
    }
    assert.isUndefined(claimedBytes(new Uint8Array(100), 0))
  })

  it("is found behind garbage by its log id", () => {
    const frame = frameOf(3, ["a record"])
    assert.isTrue(hasFrameAfter(Buffer.concat([Buffer.alloc(13, 9), frame]), 0, logId))
    assert.isFalse(hasFrameAfter(Buffer.concat([Buffer.alloc(13, 9), frame.subarray(0, -1)]), 0, logId))
  })
})

describe("scanning a segment", () => {
  const frames = [frameOf(0, ["a", "b"]), frameOf(2, ["c"]), frameOf(3, ["d", "e", "f"])]
  const content = Buffer.concat(frames)
  const length = (count: number): number =>
    frames.slice(0, count).reduce((sum, frame) => sum + frame.length, 0)

  const scanned = (bytes: Uint8Array, next?: number): Segment.Segment => {
    const segment = Segment.scan("file", 0, bytes, logId, next)
    if (segment instanceof LogCorrupt) throw segment
    return segment
  }
  const damaged = (bytes: Uint8Array, next?: number): LogCorrupt => {
    const problem = Segment.scan("file", 0, bytes, logId, next)
    assert.instanceOf(problem, LogCorrupt)
    return problem as LogCorrupt
  }

  it("cuts the newest one after its last whole frame, wherever it is torn", () => {
    for (let cut = 0; cut <= content.length; cut++) {
      const whole = frames.filter((_, index) => length(index + 1) <= cut).length
      const segment = scanned(content.subarray(0, cut))
      assert.strictEqual(segment.bytes, length(whole), `cut at ${cut}`)
      assert.strictEqual(segment.endOffset, [0, 2, 3, 6][whole])
    }
  })

  it("tells damage before a good frame from a torn end, and names the byte", () => {
    for (let at = 0; at < length(2); at++) {
      const bytes = Buffer.from(content)
      bytes[at] = (bytes[at] ?? 0) ^ 0x40
      assert.strictEqual(damaged(bytes).position, at < length(1) ? 0 : length(1), `byte ${at}`)
    }
  })

  it("wants every offset up to the next segment, and ignores a failed batch after them", () => {
    assert.strictEqual(scanned(content, 6).bytes, content.length)
    assert.strictEqual(
      scanned(content, 3).bytes,
      length(2),
      "the frame at 3 was written again into the next segment"
    )
    assert.strictEqual(damaged(content, 7).position, content.length)
    assert.strictEqual(damaged(content.subarray(0, -1), 6).position, length(2))
    assert.strictEqual(damaged(content, 1).position, 0, "a frame that overlaps the next segment")
  })
})
