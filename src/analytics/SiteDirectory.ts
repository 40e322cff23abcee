import { Context, Effect, Layer } from "effect"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import * as Mirror from "#src/infra/postgres/Mirror.ts"
import { decodeSiteRow } from "./SiteRow.ts"
import type { SiteRow } from "./SiteRow.ts"

/**
 * The sites of this server in memory, a poll behind Postgres at most, and served without it: ingest asks it for every
 * event. A rotated secret and a deleted site stop within a second, everywhere.
 */
export class SiteDirectory extends Context.Service<
  SiteDirectory,
  {
    readonly get: (id: string) => SiteRow | undefined
    /** by the secret that a caller sent, whatever it sent */
    readonly findBySecret: (secret: string) => SiteRow | undefined
    readonly all: () => IterableIterator<SiteRow>
    /** after an own write, with the row that it RETURNed: known here at once */
    readonly applyLocal: (row: SiteRow) => void
    readonly status: () => Mirror.MirrorStatus
  }
>()("signalbox/analytics/SiteDirectory") {
  static readonly layer = Layer.effect(
    SiteDirectory,
    Effect.gen(function* () {
      const mirror = yield* Mirror.make({
        table: "sites",
        decode: decodeSiteRow,
        indexes: { secret: (site) => site.secretHash },
        isGone: (site) => site.isDeleted
      })
      return SiteDirectory.of({
        get: mirror.get,
        // The hash is the key of a map: no comparison takes longer the more of a secret is right.
        findBySecret: (secret) => mirror.by("secret", hashOf(secret).toString("hex")),
        all: mirror.all,
        applyLocal: mirror.applyLocal,
        status: mirror.status
      })
    })
  )
}
