import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newId, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"
import { adminFileIn, type AdminFileFailed, read, write } from "./AdminFile.ts"
import { opens } from "./Administrators.ts"

/** The place of an administrator's key: made and shown now, in admin.json, or unknown to the server. */
export type AdminKey =
  | { readonly _tag: "New"; readonly key: string; readonly userId: string }
  | { readonly _tag: "Kept" }
  | { readonly _tag: "Nowhere" }

/**
 * The first boot on an empty database makes an administrator and their account key. The key is written to
 * DATA_DIR/admin.json (mode 0600) and shown once. That file never names a key that does not work.
 * Source: contract/start#first-boot.
 */
export class FirstBoot extends Context.Service<
  FirstBoot,
  {
    /** the key that this boot made; undefined when there was an administrator already */
    readonly newAdminKey: string | undefined
    /** writes the server's address into admin.json, and logs the place of a key */
    readonly announce: (url: string) => Effect.Effect<AdminKey, AdminFileFailed | SqlError>
    /** Takes a key that no longer works out of admin.json when a key or an administrator is gone. Logs failures. */
    readonly forgetDeadKey: Effect.Effect<void>
  }
>()("signalbox/accounts/FirstBoot") {
  static readonly layer: Layer.Layer<FirstBoot, SqlError | AdminFileFailed, SqlClient | AppConfig> =
    Layer.effect(
      FirstBoot,
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const file = adminFileIn((yield* AppConfig).dataDir)
        const key = newSecret("sk_")
        const madeId = yield* makeAdministrator(key, (made) => write(file, { url: "", adminKey: made }))

        /** The new content of the file: undefined if there is none, because another process made the administrator. */
        const kept = (urlNow?: string) =>
          Effect.gen(function* () {
            const known = yield* read(file)
            if (known === undefined) return undefined
            const { adminKey, url } = known
            const works = adminKey !== undefined && (yield* opens(sql, hashOf(adminKey)))
            const next = { url: urlNow ?? url, ...(works && { adminKey }) }
            if (next.url !== url || next.adminKey !== adminKey) yield* write(file, next)
            return next
          })
        return FirstBoot.of({
          newAdminKey: madeId === undefined ? undefined : key,
          announce: (url) =>
            Effect.map(kept(url), (known): AdminKey => {
              if (known?.adminKey === undefined) return { _tag: "Nowhere" }
              return madeId === undefined ? { _tag: "Kept" } : { _tag: "New", key, userId: madeId }
            }),
          forgetDeadKey: Effect.catch(Effect.asVoid(kept()), (error) =>
            Effect.logWarning(`admin.json may name a key that works no more: ${error.message}`)
          )
        })
      })
    )
}

/** pg_advisory_xact_lock: of two processes that boot at once on one database one makes the administrator. */
const firstBootLock = 0x5b_0002

const insertAdministrator = (sql: SqlClient) =>
  Effect.gen(function* () {
    const id = newId("usr")
    const row = { id, email: "admin@localhost", name: "Administrator", role: "admin" }
    yield* sql`INSERT INTO users ${sql.insert(row)}`
    return id
  })

const insertKey = (sql: SqlClient, userId: string, key: string) =>
  sql`INSERT INTO keys ${sql.insert({
    id: newId("key"),
    user_id: userId,
    name: "admin",
    kind: "account",
    prefix: prefixOf(key),
    hash: hashOf(key)
  })}`

/** Another account key for the first administrator, kept before it works: for operators who have lost every key. */
export const makeAdminKey = <E>(keep: (key: string) => Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const key = newSecret("sk_")
    yield* Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${firstBootLock})`
      const [known] = yield* sql<{ id: string }>`SELECT id FROM users
        WHERE role = 'admin' AND deleted_at IS NULL ORDER BY created_at, id LIMIT 1`
      yield* insertKey(sql, known?.id ?? (yield* insertAdministrator(sql)), key)
      yield* keep(key)
    }).pipe(sql.withTransaction)
    return key
  })

/**
 * The file is written before the transaction ends: a crash in between leaves a key that does not work, and the next
 * boot makes another, and no administrator is left with an unknown key. Answers the administrator's id; undefined: there was
 * one.
 */
const makeAdministrator = (key: string, keep: (key: string) => Effect.Effect<void, AdminFileFailed>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return yield* Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${firstBootLock})`
      const known = yield* sql`SELECT id FROM users WHERE role = 'admin' AND deleted_at IS NULL LIMIT 1`
      if (known.length > 0) return undefined
      const userId = yield* insertAdministrator(sql)
      yield* insertKey(sql, userId, key)
      yield* keep(key)
      return userId
    }).pipe(sql.withTransaction)
  })
