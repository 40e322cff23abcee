import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Sink, SinkBatch } from "#streams/kernel/Sink.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { decode } from "#streams/llm/CallRow.ts"
import { sinkFailureOf } from "#src/infra/postgres/SinkFailure.ts"
import { type Booking, bookingOf, columnsOf, cutDown, type Missing } from "./Settlements.ts"

interface MissingRow {
  readonly limit_id: string
  readonly window_millis: string
  readonly missing: string
}

/**
 * Settles the log of calls: a batch is one transaction with the offset that the log is settled to, so that a repeated
 * batch changes nothing. Entries are booked once by their request, kind and window, with any offset.
 */
export const make = (owner: string): Effect.Effect<Sink, never, SqlClient> =>
  Effect.map(SqlClient, (sql) => ({
    write: (batch) => sql.withTransaction(settle(sql, owner, batch)).pipe(Effect.mapError(sinkFailureOf)),
    check: Effect.gen(function* () {
      yield* book(sql, owner, yield* appliedTo(sql, owner), [])
    }).pipe(sql.withTransaction, Effect.mapError(sinkFailureOf))
  }))

/** Holds the owner's row until the transaction ends. */
const appliedTo = (sql: SqlClient, owner: string) =>
  Effect.map(
    sql<{ applied: string }>`SELECT applied::text FROM owners WHERE id = ${owner} FOR NO KEY UPDATE`,
    ([known]) => Number(known?.applied ?? 0)
  )

const settle = Effect.fnUntraced(function* (sql: SqlClient, owner: string, batch: SinkBatch) {
  const applied = yield* appliedTo(sql, owner)
  const isOutOfTurn = batch.outOfTurn === true
  if (batch.to <= applied && !isOutOfTurn) return
  // The log may hold a call twice, when it did not know whether the disk had taken it.
  const bookings = new Map<string, Booking>()
  const estimated: Array<CallRecord> = []
  for (const { offset, payload } of batch.records) {
    if (offset < applied && !isOutOfTurn) continue
    const booking = bookingOf(decode(payload))
    if (booking.charge > 0n || booking.losses.size > 0 || booking.draws.length > 0) {
      bookings.set(booking.record.id, booking)
    }
    if (booking.record.estimates !== undefined) estimated.push(booking.record)
  }
  yield* list(sql, estimated)
  const all = Array.from(bookings.values())
  while (true) {
    const [missing] = yield* book(sql, owner, isOutOfTurn ? applied : batch.to, all)
    if (missing === undefined) return
    // One at a time: an amount cut for one limit may have been missing of another one as well.
    const uncut = cutDown(all, missing)
    if (uncut > 0n) return yield* Effect.die(new Error(`${uncut} of ${missing.limit} is drawn by no call`))
  }
})

/** Writes down the estimated part of a call's cost. */
const list = (sql: SqlClient, records: ReadonlyArray<CallRecord>) => {
  const rows = records.flatMap(({ estimates = [], id, userId }) =>
    estimates.map(({ amount, reason }, place) => ({ id, place: String(place), userId, reason, amount }))
  )
  if (rows.length === 0) return Effect.void
  const column = (name: "id" | "place" | "userId" | "reason" | "amount") => rows.map((row) => row[name])
  return sql`INSERT INTO cost_estimates (request_id, place, user_id, reason, amount)
    SELECT * FROM unnest(${column("id")}::text[], ${column("place")}::text[]::integer[], ${column("userId")}::text[],
      ${column("reason")}::text[], ${column("amount")}::text[]::numeric[])
    ON CONFLICT DO NOTHING`
}

/** Answers the uncovered draws; then nothing was booked. */
const book = (sql: SqlClient, owner: string, to: number, bookings: ReadonlyArray<Booking>) => {
  const columns = columnsOf(bookings)
  return Effect.map(
    sql<MissingRow>`SELECT limit_id, window_millis, missing FROM ledger_settle(${owner}, ${String(to)}::text::bigint,
      ${columns.requests}::text[], ${columns.kinds}::text[], ${columns.debits}::text[], ${columns.credits}::text[],
      ${columns.amounts}::text[]::numeric[], ${columns.units}::text[], ${columns.users}::text[], ${columns.keys}::text[],
      ${columns.starts}::text[]::bigint[], ${columns.drawEntries}::text[]::integer[], ${columns.drawLimits}::text[],
      ${columns.drawStarts}::text[]::bigint[], ${columns.drawAmounts}::text[]::numeric[],
      ${columns.drawLeased}::text[]::boolean[])`,
    (rows) =>
      rows.map(({ limit_id, missing, window_millis }): Missing => ({
        limit: limit_id,
        windowStart: Number(window_millis),
        amount: BigInt(missing)
      }))
  )
}
