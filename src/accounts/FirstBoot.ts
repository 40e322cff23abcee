import { chmod, open, readFile, rename } from "node:fs/promises"
import { join } from "node:path"
import { Context, Effect, Layer, Predicate, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { hashOf, newId, newSecret, prefixOf } from "#src/infra/crypto/Tokens.ts"

/** DATA_DIR/admin.json cannot be read or written. */
export class AdminFileFailed extends Schema.TaggedError<AdminFileFailed>()("AdminFileFailed", {
  file: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.file}: ${this.problem}`
  }
}

const AdminFile = Schema.fromJsonString(Schema.Struct({ url: Schema.String, adminKey: Schema.String }))
type AdminFile = typeof AdminFile.Type

/**
 * The first boot on an empty database makes an administrator and their account key. The key is written to
 * DATA_DIR/admin.json (mode 0600) and shown once. Source: decisions, Start-up.
 */
export class FirstBoot extends Context.Service<
  FirstBoot,
  {
    /** the key that this boot made; undefined when there was an administrator already */
    readonly newAdminKey: string | undefined
    /** writes where the server listens into admin.json */
    readonly announce: (url: string) => Effect.Effect<void, AdminFileFailed>
  }
>()("signalbox/accounts/FirstBoot") {
  static readonly layer: Layer.Layer<FirstBoot, SqlError | AdminFileFailed, SqlClient | AppConfig> =
    Layer.effect(
      FirstBoot,
      Effect.gen(function* () {
        const { dataDir } = yield* AppConfig
        const file = join(dataDir, "admin.json")
        const key = newSecret("sk_")
        const isNew = yield* makeAdministrator(key, (made) => write(file, { url: "", adminKey: made }))
        return FirstBoot.of({
          newAdminKey: isNew ? key : undefined,
          announce: (url) =>
            Effect.flatMap(read(file), (known) =>
              // Another process made the administrator, or the file was taken away: its key cannot be had again.
              known === undefined || known.url === url ? Effect.void : write(file, { ...known, url })
            )
        })
      })
    )
}

/** pg_advisory_xact_lock: of two processes that boot at once on one database one makes the administrator. */
const firstBootLock = 0x5b_0002

/**
 * The file is written before the transaction ends: a crash in between leaves a key that does not work, and the next
 * boot makes another, instead of an administrator whose key nobody has.
 */
const makeAdministrator = (key: string, keep: (key: string) => Effect.Effect<void, AdminFileFailed>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return yield* Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${firstBootLock})`
      const known = yield* sql`SELECT id FROM users WHERE role = 'admin' AND deleted_at IS NULL LIMIT 1`
      if (known.length > 0) return false
      const userId = newId("usr")
      yield* sql`INSERT INTO users ${sql.insert({
        id: userId,
        email: "admin@localhost",
        name: "Administrator",
        role: "admin"
      })}`
      yield* sql`INSERT INTO keys ${sql.insert({
        id: newId("key"),
        user_id: userId,
        name: "admin",
        kind: "account",
        prefix: prefixOf(key),
        hash: hashOf(key)
      })}`
      yield* keep(key)
      return true
    }).pipe(sql.withTransaction)
  })

const failed = (file: string) => (cause: unknown) =>
  new AdminFileFailed({ file, problem: cause instanceof Error ? cause.message : String(cause) })

const read = (file: string): Effect.Effect<AdminFile | undefined, AdminFileFailed> =>
  Effect.tryPromise({
    try: () =>
      readFile(file, "utf8").catch((error: unknown) => {
        if (Predicate.hasProperty(error, "code") && error.code === "ENOENT") return undefined
        throw error
      }),
    catch: failed(file)
  }).pipe(
    Effect.flatMap((text) =>
      text === undefined
        ? Effect.succeed(undefined)
        : Effect.mapError(Schema.decodeEffect(AdminFile)(text), failed(file))
    )
  )

/** Whole or not at all, and never readable by others, not even for an instant. */
const write = (file: string, content: AdminFile): Effect.Effect<void, AdminFileFailed> =>
  Effect.tryPromise({
    try: async () => {
      const temporary = `${file}.${process.pid}.tmp`
      const handle = await open(temporary, "w", 0o600)
      try {
        await handle.writeFile(`${JSON.stringify(content, null, 2)}\n`)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await chmod(temporary, 0o600)
      await rename(temporary, file)
    },
    catch: failed(file)
  })
