import { Effect } from "effect"
import type { Sink, SinkBatch } from "#streams/kernel/Sink.ts"
import { callColumns, fieldsOf } from "#streams/llm/CallRow.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { insertOnce } from "#src/infra/clickhouse/InsertOnce.ts"
import { sinkFailureOf } from "#src/infra/clickhouse/SinkFailure.ts"

const columns = ["log_id", "seq", ...callColumns]

/** The rows of the offsets that are wanted, one JSON object a line. */
const rowsOf = (batch: SinkBatch, isWanted: (offset: number) => boolean): Buffer =>
  Buffer.concat(
    batch.records
      .filter(({ offset }) => isWanted(offset))
      .flatMap(({ offset, payload }) => [
        Buffer.from(`{"log_id":"${batch.logId}","seq":${offset},`),
        fieldsOf(payload),
        lineFeed
      ])
  )

const lineFeed = Buffer.from("\n")

/** The one writer of `calls` in this process: each call of the log is one row of it, exactly once. */
export const make: Effect.Effect<Sink, never, ClickHouse> = Effect.map(ClickHouse, (clickhouse) => {
  let lastToken = ""

  const present = ({ from, logId, to }: SinkBatch) =>
    clickhouse
      .query<{ readonly seq: number }>(
        `SELECT seq FROM calls
        WHERE log_id = {log:UInt64} AND seq >= {from:UInt64} AND seq < {to:UInt64}`,
        { log: String(logId), from, to }
      )
      .pipe(Effect.map((rows) => new Map(rows.map(({ seq }) => [Number(seq), true]))))

  const write = Effect.fnUntraced(function* (batch: SinkBatch) {
    const isRepeated = lastToken === batch.token
    lastToken = batch.token
    yield* insertOnce(clickhouse, {
      batch,
      isRepeated,
      insert: (isWanted, token) =>
        clickhouse.insert("calls", columns, rowsOf(batch, isWanted), { format: "JSONEachRow", token }),
      present: present(batch)
    })
    lastToken = ""
  })

  return {
    write: (batch) => Effect.mapError(write(batch), sinkFailureOf),
    check: Effect.suspend(() => Effect.mapError(clickhouse.checkInsert("calls", columns), sinkFailureOf))
  }
})
