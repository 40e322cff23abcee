import type { ResidentLimits } from "#streams/analytics/ResidentDays.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { VisitUpdate } from "../store/VisitUpdate.ts"
import type { Held } from "./CountingLease.ts"
import { fenceOf } from "./Fence.ts"

/**
 * The visits known in one epoch of the lease. The next epoch forgets them, because other processes may have written
 * visits since; later writes belong to it.
 */
export class EpochVisits {
  readonly #clickhouse: ClickHouseService
  readonly #limits: ResidentLimits | undefined
  #before = { visitRows: 0, recomputed: 0 }
  #epoch: number | undefined
  #visits: VisitUpdate

  constructor(clickhouse: ClickHouseService, nowMillis: number, limits: ResidentLimits | undefined) {
    this.#clickhouse = clickhouse
    this.#limits = limits
    this.#visits = new VisitUpdate(clickhouse, nowMillis, limits)
  }

  get now(): VisitUpdate {
    return this.#visits
  }

  /** undefined: there is no lease */
  get epoch(): number | undefined {
    return this.#epoch
  }

  follow(held: Held | undefined, nowMillis: number): void {
    if (held?.epoch === this.#epoch) return
    this.#before = this.stats()
    this.#epoch = held?.epoch
    const fence = held === undefined ? undefined : fenceOf(held.epoch)
    this.#visits = new VisitUpdate(this.#clickhouse, nowMillis, this.#limits, fence)
  }

  /** since the start: rows written, visitor-days folded anew; at the moment: visitor-days in memory */
  stats(): { readonly visitRows: number; readonly recomputed: number; readonly resident: number } {
    return {
      visitRows: this.#before.visitRows + this.#visits.written,
      recomputed: this.#before.recomputed + this.#visits.recomputed,
      resident: this.#visits.resident
    }
  }
}
