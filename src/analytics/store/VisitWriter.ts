import { Clock, Effect } from "effect"
import type { VisitorKey } from "#streams/analytics/ResidentDays.ts"
import { visitColumns } from "#streams/analytics/VisitColumns.ts"
import { VisitRecords } from "#streams/analytics/VisitRecord.ts"
import type { Visit } from "#streams/analytics/Visits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { nativeBlock } from "#src/infra/clickhouse/NativeBlock.ts"
import type { StoreError } from "./EventStore.ts"
import { PageNames } from "./PageNames.ts"
import { highestVersion, type VisitPlace } from "./VisitStore.ts"

const visitNames = visitColumns.map(({ name }) => name)
const visitTypes = visitColumns.map(({ type }) => type)

/** A lot of rows that has grown to this size is inserted before more are gathered. */
const lotBytes = 8 * 1024 * 1024

/**
 * Writes rows of `visits` in lots, each under a version of its own that is higher than any before: microseconds, not
 * the log's offset, because a new log counts from 0 again, and rows that two processes wrote in turn must compare.
 * There is one writer, and who uses it holds the sink's lock.
 */
export class VisitWriter {
  readonly #clickhouse: ClickHouseService
  readonly #fence: string | undefined
  readonly #names: PageNames
  #rows = new VisitRecords()
  #version: bigint | undefined
  #written = 0

  /** @param fence a condition of ClickHouse's under which rows are taken at all; undefined: none */
  constructor(clickhouse: ClickHouseService, fence?: string) {
    this.#clickhouse = clickhouse
    this.#fence = fence
    this.#names = new PageNames(clickhouse)
  }

  /** rows that the store has confirmed since the start */
  get written(): number {
    return this.#written
  }

  get isFull(): boolean {
    return this.#rows.bytes().length >= lotBytes
  }

  /** Begins a lot: to be called before rows are added. Unwritten rows of the lot before are dropped. */
  readonly begin: Effect.Effect<void, StoreError> = Effect.gen({ self: this }, function* () {
    const before: bigint = this.#version ?? (yield* highestVersion(this.#clickhouse))
    const now = BigInt(yield* Clock.currentTimeMillis) * 1000n
    this.#version = now > before ? now : before + 1n
    this.#rows = new VisitRecords()
  })

  add(key: VisitorKey, visit: Visit): void {
    this.#rows.add(key, visit, this.#version ?? 0n)
    this.name(key, visit)
  }

  /** Has its pages' names stored with the lot, where they are not yet. */
  name(key: VisitorKey, { goalPages, pages }: Visit): void {
    this.#names.note(key, pages)
    this.#names.note(key, goalPages)
  }

  /** Takes back a row. */
  remove(key: VisitorKey, place: VisitPlace): void {
    this.#rows.remove(key, place, this.#version ?? 0n)
  }

  /** Has all names stored again. */
  forgetNames(): void {
    this.#names.forget()
  }

  /** Writes no row, and fails where any row would: without the table, a column or the permission. */
  readonly check: Effect.Effect<void, StoreError> = Effect.suspend(() =>
    Effect.andThen(this.#clickhouse.checkInsert("visits", visitNames), this.#names.check)
  )

  /** Inserts the lot and begins the next. */
  readonly flush: Effect.Effect<void, StoreError> = Effect.gen({ self: this }, function* () {
    yield* this.#names.flush
    const { rows } = this.#rows
    if (rows === 0) return
    const block = nativeBlock(visitColumns, this.#rows.bytes())
    const condition = this.#fence === undefined ? {} : { condition: { sql: this.#fence, types: visitTypes } }
    yield* this.#clickhouse.insert("visits", visitNames, block, { format: "Native", ...condition })
    this.#written += rows
    yield* this.begin
  })
}
