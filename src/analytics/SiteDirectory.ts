import { Context, Layer } from "effect"
import * as Mirror from "#src/infra/postgres/Mirror.ts"
import { decodeSiteRow, type SiteRow } from "./SiteRow.ts"

/**
 * All sites, in memory: a beacon finds its site without waiting, and while Postgres is away. Rows change at most a poll
 * after Postgres. `by("secretHash", hex)` finds the site of a secret.
 */
export class SiteDirectory extends Context.Service<SiteDirectory, Mirror.Mirror<SiteRow, "secretHash">>()(
  "signalbox/analytics/SiteDirectory"
) {
  static readonly layer = Layer.effect(
    SiteDirectory,
    Mirror.make({
      table: "sites",
      decode: decodeSiteRow,
      indexes: { secretHash: (site) => site.secretHash },
      isGone: (site) => site.isDeleted
    })
  )
}
