import { Context, Layer, Schema } from "effect"
import * as Mirror from "#src/infra/postgres/Mirror.ts"

/** A row of `keys`. */
export interface KeyRow {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly kind: "account" | "router"
  readonly prefix: string
  /** lower-case hexadecimal SHA-256 of the key */
  readonly hash: string
  readonly models: ReadonlyArray<string> | null
  readonly collections: ReadonlyArray<string> | null
  readonly expiresAt: Date | null
  readonly spendLimitUsd: number | null
  readonly rateLimitPerMinute: number | null
  readonly createdAt: Date
  readonly revokedAt: Date | null
}

const Texts = Schema.NullOr(Schema.Array(Schema.String))

const decodeColumns = Schema.decodeUnknownSync(
  Schema.Struct({
    id: Schema.String,
    user_id: Schema.String,
    name: Schema.String,
    kind: Schema.Literals(["account", "router"]),
    prefix: Schema.String,
    hash: Schema.Uint8Array,
    models: Texts,
    collections: Texts,
    expires_at: Schema.NullOr(Schema.Date),
    spend_limit_usd: Schema.NullOr(Schema.Union([Schema.String, Schema.Number])),
    rate_limit_per_minute: Schema.NullOr(Schema.Int),
    created_at: Schema.Date,
    revoked_at: Schema.NullOr(Schema.Date)
  })
)

/** A key from a row as Postgres gives it. Throws where the row is not one of `keys`. */
export const keyOfRow = (row: Readonly<Record<string, unknown>>): KeyRow => {
  const columns = decodeColumns(row)
  return {
    id: columns.id,
    userId: columns.user_id,
    name: columns.name,
    kind: columns.kind,
    prefix: columns.prefix,
    hash: Buffer.from(columns.hash).toString("hex"),
    models: columns.models,
    collections: columns.collections,
    expiresAt: columns.expires_at,
    spendLimitUsd: columns.spend_limit_usd === null ? null : Number(columns.spend_limit_usd),
    rateLimitPerMinute: columns.rate_limit_per_minute,
    createdAt: columns.created_at,
    revokedAt: columns.revoked_at
  }
}

/** All keys that are not revoked, in memory: authentication needs no query. A revocation holds within a second. */
export class KeyDirectory extends Context.Service<KeyDirectory, Mirror.Mirror<KeyRow, "hash">>()(
  "signalbox/accounts/KeyDirectory"
) {
  static readonly layer = Layer.effect(
    KeyDirectory,
    Mirror.make({
      table: "keys",
      decode: keyOfRow,
      indexes: { hash: (key) => key.hash },
      isGone: (key) => key.revokedAt !== null
    })
  )
}
