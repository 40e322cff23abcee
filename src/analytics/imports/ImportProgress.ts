import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import * as ImportRecord from "#streams/analytics/ImportRecord.ts"
import type { DurableLog, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { importLogConsumers } from "../ingest/EventLog.ts"
import type { ImportsRepository } from "./ImportsRepository.ts"

interface Reached {
  readonly dataset: string
  readonly name: string
  /** lines below it are in the log */
  readonly to: number
}

const step = { maxRecords: 10_000, maxBytes: 4 * 1024 * 1024 }

/**
 * The lines that are in the log of imports but not yet recorded in Postgres: it was away, or a crash came in between.
 * The log keeps them until they are, so no line comes in twice, however late its import is tried again.
 */
export class ImportProgress {
  readonly #log: DurableLog
  readonly #repository: ImportsRepository["Service"]
  readonly #reached = new Map<string, Reached>()

  constructor(log: DurableLog, repository: ImportsRepository["Service"]) {
    this.#log = log
    this.#repository = repository
  }

  /** Reads what an earlier process left. */
  readonly restore: Effect.Effect<void, LogUnavailable> = Effect.gen({ self: this }, function* () {
    const consumer = this.#log.consumer(importLogConsumers.progress)
    const end = this.#log.durableOffset()
    for (let from = consumer.committed(); from < end;) {
      const records = yield* consumer.read({ from, ...step })
      if (records.length === 0) return
      for (const { payload } of records) {
        const { line, name } = ImportRecord.placeOf(payload)
        this.note(EventRecord.siteOf(ImportRecord.eventOf(payload)), name, line + 1)
      }
      from += records.length
    }
  })

  /** These lines of an import are in the log. */
  note(dataset: string, name: string, to: number): void {
    const key = `${dataset} ${name}`
    if (to > (this.#reached.get(key)?.to ?? 0)) this.#reached.set(key, { dataset, name, to })
  }

  /** Postgres knows of the import's lines. */
  told(dataset: string, name: string): void {
    this.#reached.delete(`${dataset} ${name}`)
  }

  /** Tells Postgres what it does not know yet, and lets the log forget it. */
  readonly settle: Effect.Effect<void, SqlError | LogUnavailable> = Effect.gen({ self: this }, function* () {
    const to = this.#log.durableOffset()
    for (const { dataset, name, to: logged } of Array.from(this.#reached.values())) {
      yield* this.#repository.noteLogged(dataset, name, logged)
      this.told(dataset, name)
    }
    const consumer = this.#log.consumer(importLogConsumers.progress)
    if (to > consumer.committed()) yield* consumer.commit(to)
  })
}
