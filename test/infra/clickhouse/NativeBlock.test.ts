import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { nativeBlock } from "#src/infra/clickhouse/NativeBlock.ts"
import { eventColumns } from "#streams/analytics/EventColumns.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const varint = (value: number): ReadonlyArray<number> =>
  value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]

const number = (bytes: number, max?: bigint): fc.Arbitrary<Buffer> =>
  fc.bigInt(0n, max ?? 2n ** BigInt(8 * bytes) - 1n).map((value) => {
    const buffer = Buffer.alloc(8)
    buffer.writeBigUInt64LE(value)
    return buffer.subarray(0, bytes)
  })

/** Of all lengths whose varint has one byte or two, those at its edge among them. */
const text: fc.Arbitrary<Buffer> = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.nat(300).map((length) => "x".repeat(length)),
    fc.constantFrom("", "y".repeat(127), "z".repeat(128), "é".repeat(9_000))
  )
  .map((value) => {
    const bytes = Buffer.from(value)
    return Buffer.concat([Buffer.from(varint(bytes.length)), bytes])
  })

const scalars: Readonly<Record<string, fc.Arbitrary<Buffer>>> = {
  UInt8: number(1),
  UInt16: number(2),
  UInt32: number(4),
  UInt64: number(8),
  Int64: number(8),
  Date: number(2),
  String: text,
  "LowCardinality(String)": text
}

/** A value of a type in RowBinary. */
const valueOf = (type: string): fc.Arbitrary<Buffer> => {
  const item = /^Array\((.*)\)$/.exec(type)?.[1]
  if (item !== undefined) {
    const lists = fc.oneof(
      fc.array(valueOf(item), { maxLength: 4 }),
      fc.array(valueOf(item), { minLength: 129, maxLength: 131, size: "max" })
    )
    return lists.map((items) => Buffer.concat([Buffer.from(varint(items.length)), ...items]))
  }
  return type.startsWith("Enum8")
    ? number(1, 2n).map(([byte = 0]) => Buffer.from([byte + 1]))
    : (scalars[type] ?? fc.constant(Buffer.alloc(0)))
}

/** Lists of one name have one length in a table of nested ones; here each column stands for itself. */
const columnsOf = (columns: typeof eventColumns) =>
  columns.map(({ name, type }) => ({ name: name.replace(".", "_"), type }))

const tables = { events: columnsOf(eventColumns), visits: columnsOf(visitColumns) }

describe.each(["events", "visits"] as const)("rows of %s", (table) => {
  layer(TestStores.layer)((it) => {
    it.effect("are the same in ClickHouse, whether they come as rows or as a block of columns", () =>
      Effect.gen(function* () {
        const clickhouse = yield* ClickHouse
        const columns = tables[table]
        const names = columns.map(({ name }) => name)
        const declared = columns.map(({ name, type }) => `${name} ${type}`).join(", ")
        const row = fc
          .tuple(...columns.map(({ type }) => valueOf(type)))
          .map((values) => Buffer.concat(values))
        const seed = Date.now() % 1_000_000
        for (const [turn, rows] of fc
          .sample(fc.array(row, { minLength: 1, maxLength: 40 }), { numRuns: 12, seed })
          .entries()) {
          const hashes: Array<unknown> = []
          for (const format of ["RowBinary", "Native"] as const) {
            const target = `${table}_${format}_${turn}`
            yield* clickhouse.command(`CREATE TABLE ${target} (${declared}) ENGINE = Memory`)
            const bytes = Buffer.concat(rows)
            yield* clickhouse.insert(
              target,
              names,
              format === "Native" ? nativeBlock(columns, bytes) : bytes,
              { format }
            )
            hashes.push(
              yield* clickhouse.query(
                `SELECT count() AS rows, toString(sum(cityHash64(${names.join(", ")}))) AS hash FROM ${target}`
              )
            )
          }
          assert.deepStrictEqual(hashes[1], hashes[0], `seed ${seed}, turn ${turn}, ${rows.length} rows`)
        }
      })
    )
  })
})
