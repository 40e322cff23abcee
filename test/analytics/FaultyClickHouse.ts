import { Effect } from "effect"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"

/** A real ClickHouse whose next insert into a table can be made to fail: before it is done, or after. */
export class FaultyClickHouse {
  readonly service: ClickHouseService
  #next: { readonly table: string; readonly when: "before" | "after" } | undefined

  constructor(real: ClickHouseService) {
    const insert: ClickHouseService["insert"] = (table, columns, body, options) => {
      const done = real.insert(table, columns, body, options)
      if (this.#next?.table !== table) return done
      const { when } = this.#next
      this.#next = undefined
      const cut = Effect.fail(new ClickHouseUnavailable({ problem: `cut ${when}`, cause: undefined }))
      return when === "before" ? cut : Effect.andThen(done, cut)
    }
    this.service = { ...real, insert }
  }

  static readonly make = Effect.map(ClickHouse, (real) => new FaultyClickHouse(real))

  failNext(table: "events" | "visits", when: "before" | "after"): void {
    this.#next = { table, when }
  }

  /** Whether the failure that was asked for has not come. */
  heal(): boolean {
    const isWaiting = this.#next !== undefined
    this.#next = undefined
    return isWaiting
  }
}
