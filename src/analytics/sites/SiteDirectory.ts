import { Context, Effect, Layer, Schema } from "effect"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import * as Mirror from "#src/infra/postgres/Mirror.ts"
import type { Site } from "#streams/analytics/Site.ts"

/** A row of `sites`. */
export interface SiteRow extends Site {
  readonly userId: string
  readonly name: string
  /** IANA */
  readonly timezone: string
  readonly isPublic: boolean
  readonly secretPrefix: string
  /** SHA-256 of the site secret, in hexadecimal */
  readonly secretHash: string
  readonly firstEventAt: Date | null
  readonly createdAt: Date
  readonly deletedAt: Date | null
}

const Columns = Schema.Struct({
  id: Schema.String,
  user_id: Schema.String,
  name: Schema.String,
  domain: Schema.String,
  timezone: Schema.String,
  public: Schema.Boolean,
  secret_prefix: Schema.String,
  secret_hash: Schema.Uint8Array,
  visitor_secret: Schema.Uint8Array,
  first_event_at: Schema.NullOr(Schema.Date),
  created_at: Schema.Date,
  deleted_at: Schema.NullOr(Schema.Date)
})

const decodeColumns = Schema.decodeUnknownSync(Schema.toType(Columns))

/** A site from a row as Postgres gives it. Throws where the row is not one of `sites`. */
export const siteOfRow = (row: Readonly<Record<string, unknown>>): SiteRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    userId: columns.user_id,
    name: columns.name,
    domain: columns.domain,
    timezone: columns.timezone,
    isPublic: columns.public,
    secretPrefix: columns.secret_prefix,
    secretHash: Buffer.from(columns.secret_hash).toString("hex"),
    visitorSecret: columns.visitor_secret,
    firstEventAt: columns.first_event_at,
    createdAt: columns.created_at,
    deletedAt: columns.deleted_at
  }
}

/**
 * The sites of this server in memory, a poll behind Postgres at most, and served without it: ingest asks it for every
 * event. A rotated secret and a deleted site stop within a second, everywhere.
 */
export class SiteDirectory extends Context.Service<
  SiteDirectory,
  {
    readonly find: (id: string) => SiteRow | undefined
    /** by a caller's secret, in any form */
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
        decode: siteOfRow,
        indexes: { secret: (site) => site.secretHash },
        isGone: (site) => site.deletedAt !== null
      })
      return SiteDirectory.of({
        find: mirror.get,
        // The hash is the key of a map: no comparison takes longer the more of a secret is right.
        findBySecret: (secret) => mirror.by("secret", hashOf(secret).toString("hex")),
        all: mirror.all,
        applyLocal: mirror.applyLocal,
        status: mirror.status
      })
    })
  )
}
