import { Effect } from "effect"
import { pageIdOf, rememberedBytes } from "#streams/analytics/PageIds.ts"
import type { VisitorKey } from "#streams/analytics/ResidentDays.ts"
import { pack } from "#streams/analytics/VisitEvent.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "./EventStore.ts"

const columns = ["site", "id", "path", "day"]

/** Paths that are known to be stored, over all sites; beyond it all are forgotten, and written once more. */
const storedMax = 200_000

/** By site, and by packed path: the last day (since 1970-01-01) of a visit that has it. */
type LastDays = Map<string, Map<string, number>>

/**
 * `page_names`: the paths behind the numbers in `visits`, of each site with the last day that has a visit with it, so that a
 * path is deleted with the last of its visits. A name is stored before the visits that need it; twice does no harm.
 */
export class PageNames {
  readonly #clickhouse: ClickHouseService
  readonly #stored: LastDays = new Map()
  #storedCount = 0
  #fresh: LastDays = new Map()

  constructor(clickhouse: ClickHouseService) {
    this.#clickhouse = clickhouse
  }

  /** `paths` are packed. */
  note({ day, site }: VisitorKey, paths: ReadonlyArray<string>): void {
    if (paths.length === 0) return
    const stored = this.#stored.get(site)
    for (const path of paths) {
      if ((stored?.get(path) ?? -1) < day) setLatest(this.#fresh, site, path, day)
    }
  }

  /** Takes nothing for stored any more: the store may have been damaged. */
  forget(): void {
    this.#stored.clear()
    this.#storedCount = 0
  }

  /** Stores the names that are not known to be. */
  readonly flush: Effect.Effect<void, StoreError> = Effect.suspend(() => {
    const fresh = this.#fresh
    if (fresh.size === 0) return Effect.void
    const insert = this.#clickhouse.insert("page_names", columns, bytesOf(fresh), { format: "RowBinary" })
    return Effect.andThen(
      insert,
      Effect.sync(() => {
        this.#fresh = new Map()
        this.#remember(fresh)
      })
    )
  })

  /** Writes no row, and fails where any row would. */
  get check(): Effect.Effect<void, StoreError> {
    return this.#clickhouse.checkInsert("page_names", columns)
  }

  #remember(names: LastDays): void {
    if (this.#storedCount >= storedMax) this.forget()
    for (const [site, days] of names) {
      for (const [path, day] of days) {
        if (path.length <= rememberedBytes && setLatest(this.#stored, site, path, day)) this.#storedCount++
      }
    }
  }
}

/** true: the path was not there. */
const setLatest = (names: LastDays, site: string, path: string, day: number): boolean => {
  let days = names.get(site)
  if (days === undefined) names.set(site, (days = new Map()))
  const before = days.get(path)
  if (before === undefined || before < day) days.set(path, day)
  return before === undefined
}

/** The rows in RowBinary, whose texts are packed already. */
const bytesOf = (names: LastDays): Uint8Array => {
  const rows: Array<string> = []
  for (const [site, days] of names) {
    const packedSite = pack(site)
    for (const [path, day] of days) {
      rows.push(packedSite, pageIdOf(path), path, String.fromCharCode(day & 255, day >>> 8))
    }
  }
  return Buffer.from(rows.join(""), "latin1")
}
