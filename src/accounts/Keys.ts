import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type ApiKeyChange, KeyRow, type NewApiKey } from "#schemas/accounts/ApiKey.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Page } from "#schemas/core/Page.ts"
import { parseInstant } from "#schemas/core/Timestamp.ts"
import { AppConfig, type Config } from "#src/Config.ts"
import { hashOf, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { type BadRequest, Conflict, invalidField, type NotFound } from "#schemas/core/Problem.ts"
import { openersWithout } from "./Administrators.ts"
import { reachOf } from "./Users.ts"

/** All keys that are not revoked, in memory: authentication asks nobody. A revocation holds within a second. */
export class KeyDirectory extends Context.Service<
  KeyDirectory,
  CachedTable.CachedTable<typeof KeyRow, "hash">
>()("signalbox/accounts/KeyDirectory") {
  static readonly layer = Layer.effect(
    KeyDirectory,
    CachedTable.make({
      name: "keys",
      title: "Key",
      model: KeyRow,
      ids: "key",
      computed: { hash: "encode(hash, 'hex')", spend_limit_usd: "spend_limit_usd::float8" },
      indexes: { hash: (key) => key.hash },
      gone: "revoked_at"
    })
  )
}

type RoleOf = Pick<Principal, "role">

/** Creates, changes and revokes keys. */
export class Keys extends Context.Service<
  Keys,
  {
    readonly list: (
      userId: string,
      page: Page
    ) => Effect.Effect<{ readonly rows: ReadonlyArray<KeyRow>; readonly total: number }, SqlError>
    readonly create: (
      userId: string,
      key: NewApiKey,
      by: RoleOf
    ) => Effect.Effect<{ readonly row: KeyRow; readonly secret: string }, BadRequest | Conflict | SqlError>
    /** `by` an administrator, who may change any key, or its owner */
    readonly update: (
      id: string,
      change: ApiKeyChange,
      by: Principal
    ) => Effect.Effect<KeyRow, NotFound | BadRequest | Conflict | SqlError>
    readonly revoke: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<KeyRow, NotFound | Conflict | SqlError>
    /** keys of a user that are not revoked */
    readonly countOf: (userId: string) => number
  }
>()("signalbox/accounts/Keys") {
  static readonly layer = Layer.effect(
    Keys,
    Effect.gen(function* () {
      const directory = yield* KeyDirectory
      const sql = yield* SqlClient
      return Keys.of({
        ...management(directory, sql, yield* AppConfig),
        countOf: (userId) => directory.list(userId).length
      })
    })
  )
}

const expiryOf = (text: string | null | undefined): Effect.Effect<Date | null, BadRequest> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const instant = typeof text === "string" ? parseInstant(text) : null
    return instant === undefined || (instant !== null && instant.getTime() <= now)
      ? Effect.fail(invalidField("expires_at", "expected an instant in the future"))
      : Effect.succeed(instant)
  })

/** The restrictions of each kind of key, which the other kind does not take. Source: contract/accounts#keys. */
const restrictions = {
  router: ["models", "collections", "spend_limit_usd"],
  account: ["scopes"]
} as const

const fitsKind = (kind: KeyRow["kind"], fields: ApiKeyChange): Effect.Effect<void, BadRequest> => {
  const other = kind === "account" ? "router" : "account"
  const field = restrictions[other].find((name) => fields[name] !== undefined && fields[name] !== null)
  return field === undefined ? Effect.void : Effect.fail(invalidField(field, `only ${other} keys take it`))
}

/** A user may not give their own keys a rate that would fill the server. */
const rateFits = (
  { rate_limit_per_minute: rate }: ApiKeyChange,
  { role }: RoleOf,
  rateMax: number
): Effect.Effect<void, BadRequest> =>
  role === "admin" || typeof rate !== "number" || rate <= rateMax
    ? Effect.void
    : Effect.fail(
        invalidField("rate_limit_per_minute", `at most ${rateMax}; an administrator may allow more`)
      )

const lastKeyStays = () =>
  Conflict.of("The last key of the last administrator stays; make another one first", {
    code: "last_administrator_key"
  })

const management = (
  directory: KeyDirectory["Service"],
  sql: SqlClient,
  { limits, ratePerMinuteMax }: Config
) => {
  /** The key is looked for first, so that callers learn nothing about keys of others. */
  const openedWithout = (id: string, owner: string | undefined) =>
    Effect.gen(function* () {
      const { isOne, others } = yield* openersWithout(sql, id)
      yield* directory.read(id, owner)
      if (isOne && others === 0) return yield* lastKeyStays()
    })

  /** A key limited to collections that do not exist, or that another user owns, would never work. */
  const known = Effect.fnUntraced(function* (userId: string, ids: ApiKeyChange["collections"]) {
    if (ids === undefined || ids === null || ids.length === 0) return
    const found = yield* sql<{ id: string }>`SELECT id FROM collections
      WHERE user_id = ${userId} AND deleted_at IS NULL AND ${sql.in("id", ids)}`
    const there = new Set(found.map(({ id }) => id))
    const index = ids.findIndex((id) => !there.has(id))
    if (index < 0) return
    const problem = "expected the id of a collection of the key's owner"
    return yield* invalidField(`collections[${index}]`, problem)
  })

  const create = Effect.fn("Keys.create")(function* (userId: string, key: NewApiKey, by: RoleOf) {
    yield* fitsKind(key.kind, key)
    yield* rateFits(key, by, ratePerMinuteMax)
    yield* known(userId, key.collections)
    const secret = newSecret(key.kind === "router" ? "sk_mr_" : "sk_")
    const fields = {
      name: key.name,
      kind: key.kind,
      prefix: prefixOf(secret),
      hash: hashOf(secret),
      scopes: key.scopes ?? (key.kind === "router" ? [] : ["full"]),
      models: key.models ?? null,
      collections: key.collections ?? null,
      expires_at: yield* expiryOf(key.expires_at),
      spend_limit_usd: key.spend_limit_usd ?? null,
      rate_limit_per_minute: key.rate_limit_per_minute ?? null
    }
    return { row: yield* directory.insertFor(userId, fields, limits.keysPerUser), secret }
  })

  const update = Effect.fn("Keys.update")(function* (id: string, change: ApiKeyChange, by: Principal) {
    const owner = reachOf(by)
    yield* rateFits(change, by, ratePerMinuteMax)
    // Another process may have made it a moment ago, so Postgres is asked for its kind.
    const row = yield* Effect.catchTag(directory.find(id, owner), "NotFound", () => directory.read(id, owner))
    yield* fitsKind(row.kind, change)
    yield* known(row.user_id, change.collections)
    const { expires_at, ...rest } = change
    const expiry = expires_at === undefined ? {} : { expires_at: yield* expiryOf(expires_at) }
    // A key that is to expire, or to open less, is one that goes.
    const goes = typeof expires_at === "string" || change.scopes?.includes("full") === false
    const before = goes ? openedWithout(id, owner) : undefined
    return yield* directory.update(id, owner, { ...rest, ...expiry }, before)
  })

  return {
    list: (userId: string, page: Page) =>
      directory.page(sql`user_id = ${userId} AND ${directory.live}`, "created_at DESC, id", page),
    create,
    update,
    revoke: (id: string, owner: string | undefined) => directory.remove(id, owner, openedWithout(id, owner))
  }
}
