import { Clock, Context, Effect, Layer, Schema, Semaphore } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ApiKeyChange, NewApiKey } from "#schemas/accounts/ApiKey.ts"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Page } from "#schemas/core/Page.ts"
import { parseInstant } from "#schemas/core/Timestamp.ts"
import { AppConfig, type Config } from "#src/Config.ts"
import { hashOf, newId, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"
import { KeyDirectory, type KeyRow } from "./KeyDirectory.ts"
import { KeysRepository, type KeyRowChange, type KeyWritten } from "./KeysRepository.ts"
import { UserDirectory } from "./UserDirectory.ts"

export class KeyNotFound extends Schema.TaggedError<KeyNotFound>()("KeyNotFound", { id: Schema.String }) {}

/** A field that fits its schema but not the state of the server. */
export class KeyFieldInvalid extends Schema.TaggedError<KeyFieldInvalid>()("KeyFieldInvalid", {
  field: Schema.String,
  problem: Schema.String
}) {}

/** The user has as many keys as one may have. */
export class TooManyKeys extends Schema.TaggedError<TooManyKeys>()("TooManyKeys", { limit: Schema.Int }) {}

/** Without this key the server would have no administrator's key left. */
export class LastAdministratorKey extends Schema.TaggedError<LastAdministratorKey>()(
  "LastAdministratorKey",
  {}
) {}

/** Creates, changes and revokes keys, and finds the holder of a secret. */
export class Keys extends Context.Service<
  Keys,
  {
    /** the holder of a secret; undefined: none (unknown, expired, revoked, its owner deleted) */
    readonly authenticate: (secret: string) => Effect.Effect<Principal | undefined, SqlError>
    /** As `authenticate`, from memory alone: "unknown" is a secret that only Postgres could know. */
    readonly recall: (secret: string) => Principal | "unknown" | undefined
    /** The holder of a key, by its id and from memory; undefined once it is revoked or has expired. */
    readonly holder: (keyId: string) => Principal | undefined
    readonly list: (
      userId: string,
      page: Page
    ) => Effect.Effect<{ readonly keys: ReadonlyArray<KeyRow>; readonly total: number }, SqlError>
    readonly create: (
      userId: string,
      key: NewApiKey,
      by: Principal
    ) => Effect.Effect<
      { readonly row: KeyRow; readonly secret: string },
      KeyFieldInvalid | TooManyKeys | SqlError
    >
    /** `by` an administrator, who may change any key, or its owner */
    readonly update: (
      id: string,
      change: ApiKeyChange,
      by: Principal
    ) => Effect.Effect<KeyRow, KeyNotFound | KeyFieldInvalid | LastAdministratorKey | SqlError>
    readonly revoke: (
      id: string,
      owner: string | undefined
    ) => Effect.Effect<void, KeyNotFound | LastAdministratorKey | SqlError>
    /** keys of a user that are not revoked */
    readonly countOf: (userId: string) => number
  }
>()("signalbox/accounts/Keys") {
  static readonly layerNoDeps = Layer.effect(
    Keys,
    Effect.gen(function* () {
      const directory = yield* KeyDirectory
      const users = yield* UserDirectory
      const repository = yield* KeysRepository
      return Keys.of({
        ...management(directory, repository, yield* AppConfig),
        authenticate: yield* authentication(directory, users, repository),
        recall: recalling(directory, users, yield* Clock.Clock),
        holder: holding(directory, users, yield* Clock.Clock),
        countOf: (userId) => [...directory.all()].filter((key) => key.userId === userId).length
      })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(KeysRepository.layer))
}

const form = /^sk_(mr_)?[0-9A-Za-z]{40}$/

/** Look-ups under way at once for keys that memory does not know: guesses must not take Postgres's connections. */
const lookupsAtOnce = 2

const authentication = Effect.fnUntraced(function* (
  directory: KeyDirectory["Service"],
  users: UserDirectory["Service"],
  repository: KeysRepository["Service"]
) {
  const lookups = yield* Semaphore.make(lookupsAtOnce)
  /** A key that another process has just made is not here yet. */
  const ask = (hash: Uint8Array) =>
    Effect.map(lookups.withPermits(1)(repository.findByHash(hash)), (key) => {
      if (key !== undefined) directory.applyLocal(key)
      return key
    })
  /** Nor a user who was made with the key: memory is brought up to date before the key is refused as ownerless. */
  const ownerOf = (key: KeyRow) => {
    const known = users.get(key.userId)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(Effect.catchTag(users.refreshNow, "MirrorFailed", Effect.die), () =>
      users.get(key.userId)
    )
  }
  return (secret: string): Effect.Effect<Principal | undefined, SqlError> =>
    Effect.gen(function* () {
      if (!form.test(secret)) return undefined
      const hash = hashOf(secret)
      // The hash is the key of a map: no comparison takes longer the more of a secret is right.
      const key = directory.by("hash", hash.toString("hex")) ?? (yield* ask(hash))
      const now = yield* Clock.currentTimeMillis
      if (key === undefined) return undefined
      const user = yield* ownerOf(key)
      return user === undefined || hasExpired(key, now) ? undefined : principalOf(key, user.role)
    })
})

const recalling =
  (directory: KeyDirectory["Service"], users: UserDirectory["Service"], clock: Clock.Clock) =>
  (secret: string): Principal | "unknown" | undefined => {
    if (!form.test(secret)) return undefined
    const key = directory.by("hash", hashOf(secret).toString("hex"))
    const user = key === undefined ? undefined : users.get(key.userId)
    if (key === undefined || user === undefined) return "unknown"
    return hasExpired(key, clock.currentTimeMillisUnsafe()) ? undefined : principalOf(key, user.role)
  }

const holding =
  (directory: KeyDirectory["Service"], users: UserDirectory["Service"], clock: Clock.Clock) =>
  (keyId: string): Principal | undefined => {
    const key = directory.get(keyId)
    const user = key === undefined ? undefined : users.get(key.userId)
    if (key === undefined || user === undefined || hasExpired(key, clock.currentTimeMillisUnsafe()))
      return undefined
    return principalOf(key, user.role)
  }

const hasExpired = ({ expiresAt }: KeyRow, now: number): boolean =>
  expiresAt !== null && expiresAt.getTime() <= now

const principalOf = (key: KeyRow, role: Principal["role"]): Principal => ({
  keyId: key.id,
  keyName: key.name,
  kind: key.kind,
  userId: key.userId,
  role,
  models: key.models,
  collections: key.collections,
  rateLimitPerMinute: key.rateLimitPerMinute
})

const expiryOf = (text: string | null | undefined): Effect.Effect<Date | null, KeyFieldInvalid> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const instant = typeof text === "string" ? parseInstant(text) : null
    return instant === undefined || (instant !== null && instant.getTime() <= now)
      ? Effect.fail(
          new KeyFieldInvalid({ field: "expires_at", problem: "expected an instant in the future" })
        )
      : Effect.succeed(instant)
  })

/** Account keys have no restrictions of these kinds. Source: contract/accounts#keys. */
const routerFields = ["models", "collections", "spend_limit_usd"] as const

const routerOnly = (kind: KeyRow["kind"], fields: ApiKeyChange): Effect.Effect<void, KeyFieldInvalid> => {
  const field = routerFields.find((name) => fields[name] !== undefined && fields[name] !== null)
  return kind === "account" && field !== undefined
    ? Effect.fail(new KeyFieldInvalid({ field, problem: "only router keys take it" }))
    : Effect.void
}

/** Administrators reach all users' keys. */
const reachOf = (key: Principal): string | undefined => (key.role === "admin" ? undefined : key.userId)

/** A user may not give their own keys a rate that would fill the server. */
const rateFits = (
  { rate_limit_per_minute: rate }: ApiKeyChange,
  { role }: Principal,
  rateMax: number
): Effect.Effect<void, KeyFieldInvalid> =>
  role === "admin" || typeof rate !== "number" || rate <= rateMax
    ? Effect.void
    : Effect.fail(
        new KeyFieldInvalid({
          field: "rate_limit_per_minute",
          problem: `at most ${rateMax}; an administrator may allow more`
        })
      )

const management = (
  directory: KeyDirectory["Service"],
  repository: KeysRepository["Service"],
  { limits, ratePerMinuteMax }: Config
) => {
  const written = <E>(id: string, write: Effect.Effect<KeyWritten, E>) =>
    Effect.flatMap(write, (row): Effect.Effect<KeyRow, KeyNotFound | LastAdministratorKey> => {
      if (typeof row !== "object")
        return Effect.fail(row === undefined ? new KeyNotFound({ id }) : new LastAdministratorKey())
      directory.applyLocal(row)
      return Effect.succeed(row)
    })

  /** A key limited to collections that do not exist, or that another user owns, would never work. */
  const known = Effect.fnUntraced(function* (userId: string, ids: ApiKeyChange["collections"]) {
    if (ids === undefined || ids === null || ids.length === 0) return
    const unknown = yield* repository.unknownCollections(userId, ids)
    const index = ids.findIndex((id) => unknown.has(id))
    if (index < 0) return
    const problem = "expected the id of a collection of the key's owner"
    return yield* new KeyFieldInvalid({ field: `collections[${index}]`, problem })
  })

  const create = Effect.fn("Keys.create")(function* (userId: string, key: NewApiKey, by: Principal) {
    yield* routerOnly(key.kind, key)
    yield* rateFits(key, by, ratePerMinuteMax)
    yield* known(userId, key.collections)
    const secret = newSecret(key.kind === "router" ? "sk_mr_" : "sk_")
    const columns = {
      id: newId("key"),
      user_id: userId,
      name: key.name,
      kind: key.kind,
      prefix: prefixOf(secret),
      hash: hashOf(secret),
      models: key.models ?? null,
      collections: key.collections ?? null,
      expires_at: yield* expiryOf(key.expires_at),
      spend_limit_usd: key.spend_limit_usd ?? null,
      rate_limit_per_minute: key.rate_limit_per_minute ?? null
    }
    const row = yield* repository.insert(columns, limits.keysPerUser)
    if (row === undefined) return yield* new TooManyKeys({ limit: limits.keysPerUser })
    directory.applyLocal(row)
    return { row, secret }
  })

  const update = Effect.fn("Keys.update")(function* (id: string, change: ApiKeyChange, by: Principal) {
    yield* rateFits(change, by, ratePerMinuteMax)
    const owner = reachOf(by)
    // Another process may have made it a moment ago, so Postgres is asked for its kind.
    const before = directory.get(id) ?? (yield* repository.update(id, owner, {}))
    if (typeof before === "object" && (owner === undefined || before.userId === owner)) {
      yield* routerOnly(before.kind, change)
      yield* known(before.userId, change.collections)
    }
    const { expires_at, ...rest } = change
    const columns: KeyRowChange =
      expires_at === undefined ? rest : { ...rest, expires_at: yield* expiryOf(expires_at) }
    return yield* written(id, repository.update(id, owner, columns))
  })

  const revoke = (id: string, owner: string | undefined) =>
    Effect.asVoid(written(id, repository.revoke(id, owner)))

  return { list: repository.list, create, update, revoke }
}
