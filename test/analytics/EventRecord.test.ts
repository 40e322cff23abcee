import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { storedEvent } from "./Events.ts"

const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.nat({ max: 5000 }).map((length) => "x".repeat(length)),
  fc.constantFrom("", "x".repeat(63), "x".repeat(64), "é".repeat(63), "x".repeat(127), "x".repeat(128))
)
const texts = fc.array(text, { maxLength: 30 })

/** `ts` and `received` are counted from the midnight of `day`. */
const fields: fc.Arbitrary<StoredEvent> = fc.record({
  site: text,
  kind: fc.constantFrom("pageview", "event", "engage"),
  ts: fc.nat({ max: 2 ** 32 - 1 }),
  received: fc.integer({ min: -(2 ** 50), max: 2 ** 52 }),
  visitor: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  day: fc.nat({ max: 65_535 }),
  name: text,
  hostname: text,
  path: text,
  pv: text,
  engagedMillis: fc.nat({ max: 4_294_967_295 }),
  referrer: text,
  source: text,
  channel: text,
  utmSource: text,
  utmMedium: text,
  utmCampaign: text,
  utmTerm: text,
  utmContent: text,
  country: text,
  browser: text,
  browserVersion: text,
  os: text,
  device: text,
  propsKeys: texts,
  propsValues: texts
})

const anyEvent = fields.map((event): StoredEvent => {
  const midnight = event.day * 86_400_000
  return { ...event, ts: midnight + event.ts, received: midnight + event.received }
})

/** An independent reader of RowBinary, driven by nothing but the column list. */
const readRow = (row: Buffer): Record<string, unknown> => {
  let at = 0
  const string = (): string => {
    let length = 0
    let shift = 0
    let byte = 0
    do {
      byte = row.readUInt8(at++)
      length |= (byte & 127) << shift
      shift += 7
    } while (byte > 127)
    at += length
    return row.toString("utf8", at - length, at)
  }
  const read = (type: string): unknown => {
    const inner = /^LowCardinality\((.*)\)$/.exec(type)?.[1]
    if (inner !== undefined) return read(inner)
    const element = /^Array\((.*)\)$/.exec(type)?.[1]
    if (element !== undefined) {
      assert.isBelow(row.readUInt8(at), 128)
      return Array.from({ length: row.readUInt8(at++) }, () => read(element))
    }
    if (type === "String") return string()
    if (type.startsWith("Enum8(")) return row.readInt8(at++)
    if (type === "Int64") return Number(row.readBigInt64LE((at += 8) - 8))
    if (type === "UInt64") return row.readBigUInt64LE((at += 8) - 8)
    if (type === "Date") return row.readUInt16LE((at += 2) - 2)
    if (type === "UInt32") return row.readUInt32LE((at += 4) - 4)
    throw new Error(`no reader for ${type}`)
  }
  const columns = Object.fromEntries(eventColumns.map(({ name, type }) => [name, read(type)]))
  assert.strictEqual(at, row.length)
  return columns
}

const fieldOf = (column: string): string =>
  column === "engaged_ms"
    ? "engagedMillis"
    : column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

describe("EventRecord", () => {
  it("reads back every event that it wrote", () => {
    fc.assert(
      fc.property(anyEvent, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (event, idHash) => {
        const record = EventRecord.encode(event, idHash).slice()
        assert.deepStrictEqual(EventRecord.decode(record), event)
        assert.strictEqual(EventRecord.idHashOf(record), idHash)
      })
    )
  })

  it("writes the columns of EventColumns in their order and types", () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        const row = readRow(Buffer.from(EventRecord.rowOf(EventRecord.encode(event))))
        const kinds = { pageview: 1, event: 2, engage: 3 }
        const { received, ts, ...rest } = event
        const times = { atMs: ts - event.day * 86_400_000, lagMs: received - ts }
        const expected = { ...rest, ...times, kind: kinds[event.kind] }
        const actual = Object.fromEntries(Object.entries(row).map(([name, value]) => [fieldOf(name), value]))
        assert.deepStrictEqual(actual, expected)
      })
    )
  })

  it("replaces lone surrogates, which UTF-8 cannot carry", () => {
    const record = EventRecord.encode(storedEvent({ path: "/\ud800x" }))
    assert.strictEqual(EventRecord.decode(record).path, "/\ufffdx")
  })

  it("carries no id hash unless one is given", () => {
    assert.strictEqual(EventRecord.idHashOf(EventRecord.encode(storedEvent())), 0n)
  })

  it("refuses a record that is cut anywhere, or goes on", () => {
    const record = EventRecord.encode(storedEvent({ propsKeys: ["plan"], propsValues: ["pro"] })).slice()
    for (let length = 0; length < record.length; length++) {
      assert.throws(() => EventRecord.decode(record.subarray(0, length)), EventRecord.EventRecordInvalid)
    }
    assert.throws(() => EventRecord.decode(Buffer.concat([record, Buffer.alloc(1)])), /1 bytes too many/)
  })

  it("refuses another version and an unknown kind", () => {
    const record = EventRecord.encode(storedEvent()).slice()
    const kindAt = EventRecord.headerBytes + 1 + storedEvent().site.length
    assert.throws(() => EventRecord.rowOf(Buffer.from(record).fill(9, 0, 1)), /version 9/)
    assert.throws(() => EventRecord.decode(Buffer.from(record).fill(9, kindAt, kindAt + 1)), /kind 9/)
  })

  it("is copied by slice, as callers expect of bytes", () => {
    const first = EventRecord.encode(storedEvent({ path: "/first" })).slice()
    EventRecord.encode(storedEvent({ path: "/other" }))
    assert.strictEqual(EventRecord.decode(first).path, "/first")
  })

  it("reuses its buffer: a record is good until the next one", () => {
    const first = EventRecord.encode(storedEvent({ path: "/first" }))
    EventRecord.encode(storedEvent({ path: "/other" }))
    assert.strictEqual(EventRecord.decode(first).path, "/other")
  })
})
