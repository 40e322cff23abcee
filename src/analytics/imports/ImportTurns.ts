import { eventOf } from "#streams/analytics/ImportRecord.ts"
import { rowOf } from "#streams/analytics/EventRecord.ts"
import { dayOfRow } from "#streams/analytics/VisitEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import { monthGroups } from "../store/MonthGroups.ts"

export interface ImportTurnLimits {
  readonly rows: number
  readonly months: number
}

/**
 * Cuts a batch of imported events into turns of few months and rows, in the order of time: each is written on its own, and
 * live events come in between. The same batch makes the same turns; a turn's records have gaps.
 */
export const importTurns = (batch: SinkBatch, limits: ImportTurnLimits): ReadonlyArray<SinkBatch> => {
  const records = batch.records.map((record) => {
    const payload = eventOf(record.payload)
    return { day: dayOfRow(rowOf(payload)), record: { ...record, payload } }
  })
  const turns: Array<SinkBatch> = []
  for (const group of monthGroups(records, limits.months)) {
    for (let at = 0; at < group.length; at += limits.rows) {
      const part = group.slice(at, at + limits.rows).map(({ record }) => record)
      const [first, last] = [part[0], part.at(-1)]
      if (first === undefined || last === undefined) continue
      const token = `${batch.token}/${turns.length}`
      turns.push({ ...batch, from: first.offset, to: last.offset + 1, records: part, token })
    }
  }
  return turns
}
