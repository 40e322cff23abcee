import { type OwnedVisitEvent, dayOfRow } from "#streams/analytics/VisitEvent.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import type { Lane } from "./VisitUpdate.ts"
import { eventOf } from "#streams/analytics/ImportRecord.ts"
import { rowOf } from "#streams/analytics/EventRecord.ts"
import { monthGroups } from "./MonthGroups.ts"

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

interface TriedTurn {
  /** of the lease; undefined: there was none */
  readonly epoch: number | undefined
  readonly events: ReadonlyArray<OwnedVisitEvent>
}

/** The batch of a lane that is being written, for when it is repeated. */
export class SinkLane {
  readonly name: Lane
  /** the events of each turn that was tried: the same rows under the same token, despite facts learnt in between */
  readonly tried = new Map<string, TriedTurn>()
  /** turns that are in the store, and in its visits */
  readonly done = new Set<string>()
  /** a turn before waits to be repeated */
  isWaiting = false
  readonly #cut: (batch: SinkBatch) => ReadonlyArray<SinkBatch>
  #token: string | undefined

  constructor(name: Lane, cut: (batch: SinkBatch) => ReadonlyArray<SinkBatch>) {
    this.name = name
    this.#cut = cut
  }

  /** State of the batch before is forgotten. */
  turnsOf(batch: SinkBatch): ReadonlyArray<SinkBatch> {
    if (this.#token !== batch.token) this.clear()
    this.#token = batch.token
    return this.#cut(batch)
  }

  clear(): void {
    this.#token = undefined
    this.tried.clear()
    this.done.clear()
  }
}
