import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Predicate } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { AppConfig } from "#src/Config.ts"
import { hashOf } from "#src/infra/crypto/Tokens.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const dataDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "signalbox-first-boot-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** A process that boots on the test's database with a DATA_DIR of its own. */
const boot = (dataDir: string) =>
  Effect.flatMap(AppConfig, (config) =>
    FirstBoot.pipe(
      Effect.provide(Layer.fresh(FirstBoot.layer)),
      Effect.provideService(AppConfig, { ...config, dataDir })
    )
  )

const adminFile = (dataDir: string) =>
  Effect.promise(async (): Promise<{ readonly url: string; readonly adminKey: string }> =>
    JSON.parse(await readFile(join(dataDir, "admin.json"), "utf8"))
  )

const empty = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`TRUNCATE users, keys CASCADE`
  return sql
})

const url = "http://127.0.0.1:1"

layer(TestStores.layer, { excludeTestServices: true })("the first boot", (it) => {
  it.effect("makes an administrator with an account key, which only the owner of DATA_DIR can read", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      const dataDir = yield* dataDirectory
      const { newAdminKey } = yield* boot(dataDir)
      assert.match(newAdminKey ?? "", /^sk_[0-9A-Za-z]{40}$/)
      assert.strictEqual((yield* adminFile(dataDir)).adminKey, newAdminKey)
      const { mode } = yield* Effect.promise(() => stat(join(dataDir, "admin.json")))
      assert.strictEqual(mode & 0o777, 0o600)
      const rows = yield* sql<{ role: string; kind: string; hash: Uint8Array }>`
        SELECT role, kind, hash FROM users JOIN keys ON user_id = users.id`
      assert.strictEqual(rows.length, 1)
      assert.deepInclude(rows[0], { role: "admin", kind: "account" })
      assert.deepStrictEqual(Buffer.from(rows[0]?.hash ?? []), hashOf(newAdminKey ?? ""))
    })
  )

  it.effect("is the only one that makes and shows a key; every boot writes where it listens", () =>
    Effect.gen(function* () {
      yield* empty
      const dataDir = yield* dataDirectory
      const first = yield* boot(dataDir)
      yield* first.announce("http://127.0.0.1:1111")
      assert.deepStrictEqual(yield* adminFile(dataDir), {
        url: "http://127.0.0.1:1111",
        adminKey: first.newAdminKey ?? ""
      })
      const second = yield* boot(dataDir)
      assert.isUndefined(second.newAdminKey)
      yield* second.announce("http://127.0.0.1:2222")
      assert.deepStrictEqual(yield* adminFile(dataDir), {
        url: "http://127.0.0.1:2222",
        adminKey: first.newAdminKey ?? ""
      })
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(dataDir)), ["admin.json"])
    })
  )

  it.effect("makes one administrator where several processes boot at once on one Postgres", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      const directories = yield* Effect.all(Array.from({ length: 5 }, () => dataDirectory))
      const booted = yield* Effect.all(directories.map(boot), { concurrency: "unbounded" })
      const made = booted.flatMap(({ newAdminKey }) => newAdminKey ?? [])
      assert.strictEqual(made.length, 1)
      assert.deepStrictEqual(yield* sql`SELECT count(*)::int AS users FROM users`, [{ users: 1 }])
      yield* Effect.all(booted.map(({ announce }) => announce("http://127.0.0.1:1")))
      const files = yield* Effect.promise(() => Promise.all(directories.map((path) => readdir(path))))
      assert.strictEqual(files.flat().length, 1, "the others know no key, and claim none")
    })
  )

  it.effect("leaves no administrator behind whose key could not be kept", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      const dataDir = yield* dataDirectory
      const failure = yield* Effect.flip(boot(join(dataDir, "missing")))
      assert.isTrue(Predicate.isTagged(failure, "AdminFileFailed"))
      assert.include(failure.message, join(dataDir, "missing", "admin.json"))
      assert.deepStrictEqual(yield* sql`SELECT id FROM users`, [])
      assert.isString((yield* boot(dataDir)).newAdminKey)
    })
  )

  it.effect(
    "says where a key is, and leaves none in admin.json that is revoked, expired, demoted or unknown",
    () =>
      Effect.gen(function* () {
        const sql = yield* empty
        for (const end of [
          sql`UPDATE keys SET revoked_at = now()`,
          sql`UPDATE keys SET expires_at = now()`,
          sql`UPDATE users SET role = 'user'`,
          sql`UPDATE users SET deleted_at = now()`,
          sql`UPDATE keys SET kind = 'router'`,
          sql`DELETE FROM keys`
        ]) {
          yield* sql`TRUNCATE users, keys CASCADE`
          const dataDir = yield* dataDirectory
          const first = yield* boot(dataDir)
          const [administrator] = yield* sql<{ id: string }>`SELECT id FROM users`
          assert.deepStrictEqual(yield* first.announce(url), {
            _tag: "New",
            key: first.newAdminKey ?? "",
            userId: administrator?.id ?? ""
          })
          // The second boot must find an administrator, or it makes one.
          yield* sql`INSERT INTO users (id, email, name, role) VALUES ('usr_other', 'o@example.org', 'O', 'admin')`
          const second = yield* boot(dataDir)
          assert.deepStrictEqual(yield* second.announce(url), { _tag: "Kept" })
          yield* end
          yield* sql`UPDATE users SET role = 'admin', deleted_at = NULL WHERE id = 'usr_other'`
          const third = yield* boot(dataDir)
          assert.deepStrictEqual(yield* third.announce(url), { _tag: "Nowhere" })
          const file = yield* Effect.promise(() => readFile(join(dataDir, "admin.json"), "utf8"))
          assert.deepStrictEqual(JSON.parse(file), { url })
          yield* Effect.promise(() => rm(join(dataDir, "admin.json")))
          assert.deepStrictEqual(yield* third.announce(url), { _tag: "Nowhere" })
        }
      })
  )

  it.effect("says so where admin.json is not what a server writes, and leaves it alone", () =>
    Effect.gen(function* () {
      yield* empty
      const dataDir = yield* dataDirectory
      yield* boot(dataDir)
      const { announce } = yield* boot(dataDir)
      yield* Effect.promise(() => writeFile(join(dataDir, "admin.json"), "{}"))
      const failure = yield* Effect.flip(announce("http://127.0.0.1:1"))
      assert.strictEqual(failure._tag, "AdminFileFailed")
      assert.strictEqual(yield* Effect.promise(() => readFile(join(dataDir, "admin.json"), "utf8")), "{}")
    })
  )
})
