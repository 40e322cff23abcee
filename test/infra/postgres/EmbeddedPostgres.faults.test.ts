import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Redacted } from "effect"
import { Model } from "effect/schema"
import { SqlClient } from "effect/sql/SqlClient"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { hidden } from "#schemas/core/Noun.ts"
import { AppConfig } from "#src/Config.ts"
import * as EmbeddedPostgres from "#src/infra/postgres/EmbeddedPostgres.ts"
import { migrate } from "#src/infra/postgres/Migrations.ts"
import * as CachedTable from "#src/infra/postgres/CachedTable.ts"
import { isReachableByOthers } from "#src/infra/postgres/PostgresBinaries.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { limits } from "#src/Limits.ts"
import { postgresMigrations } from "#src/Migrations.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { holdStore } from "#test/harness/StoreHolder.ts"

class User extends Model.Class<User>("User")({ id: hidden }) {}

/** mkdtemp makes it 0700: as root, PostgreSQL's own account cannot walk into it. */
const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-postgres-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const connected = (dataDir: string) => Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ dataDir })))

const postmaster = (dataDir: string): number =>
  Number(readFileSync(join(dataDir, "postgres/postmaster.pid"), "utf8").split("\n")[0])

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe("the embedded PostgreSQL", () => {
  it.live("keeps data, port and password over a restart, in a place that only this account can reach", () =>
    Effect.gen(function* () {
      const dataDir = join(yield* temporary, "deep", "data")
      mkdirSync(join(dataDir, ".."), { mode: 0o700 })
      const published = join(dataDir, "postgres.json")
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE kept (n integer)`
        yield* sql`INSERT INTO kept VALUES (7)`
      }).pipe(Effect.provide(connected(dataDir)))
      const { url } = JSON.parse(readFileSync(published, "utf8"))
      const rows = yield* Effect.flatMap(SqlClient, (sql) => sql`SELECT n FROM kept`).pipe(
        Effect.provide(connected(dataDir))
      )
      assert.deepStrictEqual(rows, [{ n: 7 }])
      assert.strictEqual(JSON.parse(readFileSync(published, "utf8")).url, url)
      assert.strictEqual(statSync(published).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(dataDir, "postgres/password")).mode & 0o077, 0)
    }).pipe(Effect.scoped)
  )

  it.live("refuses a wrong password and listens on loopback alone", () =>
    Effect.gen(function* () {
      const { url } = yield* EmbeddedPostgres.start(yield* temporary, limits)
      const wrong = new URL(Redacted.value(url))
      wrong.password = "wrong"
      const config = { databaseUrl: Redacted.make(wrong.href), limits: { postgresStartMillis: 200 } }
      const refused = yield* Effect.exit(
        Effect.provide(
          Effect.asVoid(SqlClient),
          Postgres.layer.pipe(Layer.provide(AppConfig.layerOf(config)))
        )
      )
      assert.isTrue(Exit.isFailure(refused))
      const rows = yield* Effect.flatMap(SqlClient, (sql) => sql`SHOW listen_addresses`).pipe(
        Effect.provide(Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ databaseUrl: url }))))
      )
      assert.deepStrictEqual(rows, [{ listen_addresses: "127.0.0.1" }])
    }).pipe(Effect.scoped)
  )

  it.live(
    "is started again when it is killed; meanwhile tables are served from memory, say so, and then catch up",
    () =>
      Effect.gen(function* () {
        const dataDir = yield* temporary
        const config = AppConfig.layerOf({
          dataDir,
          limits: { storeRestartMinMillis: 1_500, cachePollMillis: 50 }
        })
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient
          yield* migrate(postgresMigrations)
          const user = (id: string) =>
            sql`INSERT INTO users ${sql.insert({ id, email: `${id}@b.example`, name: id, role: "user" })}`
          yield* user("usr_1")
          const users = yield* CachedTable.make({
            name: "users",
            title: "User",
            model: User,
            ids: "usr",
            indexes: {},
            gone: "deleted_at"
          })
          assert.isFalse(users.status().suspended)
          process.kill(postmaster(dataDir), "SIGKILL")
          yield* eventually(
            "suspended",
            Effect.sync(() => users.status().suspended)
          )
          assert.strictEqual(users.get("usr_1")?.id, "usr_1")
          yield* eventually("Postgres answers again", Effect.as(user("usr_2"), true))
          yield* eventually(
            "the copy caught up",
            Effect.sync(() => users.get("usr_2") !== undefined)
          )
          assert.isFalse(users.status().suspended)
        }).pipe(Effect.provide(Postgres.layer.pipe(Layer.provideMerge(config))))
      }).pipe(Effect.scoped)
  )

  it.live("ends with a server process that is killed, and starts again on the same data", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      const holder = yield* holdStore("postgres", dataDir)
      assert.strictEqual(holder.said, "up")
      const pid = postmaster(dataDir)
      yield* holder.kill("SIGKILL")
      const again = yield* holdStore("postgres", dataDir)
      assert.strictEqual(again.said, "up")
      assert.isFalse(isAlive(pid))
    }).pipe(Effect.scoped)
  )

  it.live("refuses a data directory that another server process uses, and names that process", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      yield* EmbeddedPostgres.start(dataDir, limits)
      const second = yield* holdStore("postgres", dataDir)
      assert.include(second.said, `is in use by process ${process.pid}`)
    }).pipe(Effect.scoped)
  )

  it.live("takes another port where the one that was free to this process is refused to PostgreSQL", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      yield* Effect.scoped(EmbeddedPostgres.start(dataDir, limits))
      const published = join(dataDir, "postgres.json")
      const { owner, url } = JSON.parse(readFileSync(published, "utf8"))
      const kept = new URL(url)
      // Root may listen there, and PostgreSQL's account not: as with a port that is taken between probe and start.
      kept.port = "83"
      writeFileSync(published, JSON.stringify({ url: kept.href, owner }))
      const again = yield* EmbeddedPostgres.start(dataDir, limits)
      assert.notStrictEqual(new URL(Redacted.value(again.url)).port, "83")
      assert.strictEqual(JSON.parse(readFileSync(published, "utf8")).url, Redacted.value(again.url))
    }).pipe(Effect.scoped)
  )

  it("knows which directories another account can reach", () => {
    const open = mkdtempSync(join(tmpdir(), "signalbox-reach-"))
    assert.isFalse(isReachableByOthers(open))
    chmodSync(open, 0o711)
    assert.isTrue(isReachableByOthers(open))
    mkdirSync(join(open, "closed", "deep"), { recursive: true, mode: 0o755 })
    assert.isTrue(isReachableByOthers(join(open, "closed", "deep")))
    chmodSync(join(open, "closed"), 0o700)
    assert.isFalse(isReachableByOthers(join(open, "closed", "deep")))
    rmSync(open, { recursive: true })
  })

  it.live("begins anew where making the cluster was killed half-way", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      mkdirSync(join(dataDir, "postgres.new", "half"), { recursive: true })
      yield* EmbeddedPostgres.start(dataDir, limits)
    }).pipe(Effect.scoped)
  )
})
