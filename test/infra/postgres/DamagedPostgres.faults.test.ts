import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { AppConfig } from "#src/Config.ts"
import * as Postgres from "#src/infra/postgres/Postgres.ts"
import { holdStore } from "#test/harness/StoreHolder.ts"
import { makeUnreaped } from "#test/infra/process/Unreaped.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-postgres-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const use = (dataDir: string) =>
  Effect.flatMap(SqlClient, (sql) => sql`SELECT 1 AS one`).pipe(
    Effect.provide(Postgres.layer.pipe(Layer.provide(AppConfig.layerOf({ dataDir }))))
  )

const starts = (dataDir: string) =>
  Effect.map(use(dataDir), (rows) => assert.deepStrictEqual(rows, [{ one: 1 }]))

/** A data directory that has run, and was stopped. */
const used = Effect.tap(temporary, use)

describe("an embedded PostgreSQL whose files are damaged", () => {
  for (const [what, damage] of [
    ["torn", (file: string) => truncateSync(file, 20)],
    ["empty", (file: string) => truncateSync(file, 0)],
    ["of another shape", (file: string) => writeFileSync(file, `{"url":7,"owner":"me"}`)]
  ] as const) {
    it.live(`starts where postgres.json is ${what}, and writes it anew`, () =>
      Effect.gen(function* () {
        const dataDir = yield* used
        const file = join(dataDir, "postgres.json")
        damage(file)
        yield* starts(dataDir)
        assert.match(JSON.parse(readFileSync(file, "utf8")).url, /^postgres:/)
      }).pipe(Effect.scoped)
    )
  }

  it.live("is not taken from a server that runs on it, where postgres.json is torn: the file is named", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      yield* holdStore("postgres", dataDir)
      const file = join(dataDir, "postgres.json")
      truncateSync(file, 20)
      const refused = yield* Effect.exit(use(dataDir))
      assert.isTrue(Exit.isFailure(refused))
      assert.include(String(refused), file)
    }).pipe(Effect.scoped)
  )

  for (const [what, content] of [
    ["garbage", "\u0001\u0002 no number\n/nowhere\n"],
    ["empty", ""]
  ] as const) {
    it.live(`starts where postmaster.pid is ${what}`, () =>
      Effect.gen(function* () {
        const dataDir = yield* used
        writeFileSync(join(dataDir, "postgres", "postmaster.pid"), content)
        yield* starts(dataDir)
      }).pipe(Effect.scoped)
    )
  }

  it.live("starts where the one before was killed, and is not reaped", () =>
    Effect.gen(function* () {
      const dataDir = yield* used
      const zombie = yield* Effect.acquireRelease(
        Effect.promise(() => makeUnreaped("postgres")),
        ({ dispose }) => Effect.sync(dispose)
      )
      const lines = [zombie.pid, join(dataDir, "postgres"), 0, 5432, "", "127.0.0.1", "", "ready"]
      writeFileSync(join(dataDir, "postgres", "postmaster.pid"), `${lines.join("\n")}\n`)
      const { url } = JSON.parse(readFileSync(join(dataDir, "postgres.json"), "utf8"))
      const owner = { pid: zombie.pid, startedAt: zombie.startedAt }
      writeFileSync(join(dataDir, "postgres.json"), JSON.stringify({ url, owner }))
      yield* starts(dataDir)
    }).pipe(Effect.scoped)
  )

  it.live("leaves another directory's PostgreSQL alone, though postmaster.pid names it", () =>
    Effect.gen(function* () {
      const dataDir = yield* used
      const elsewhere = yield* temporary
      yield* holdStore("postgres", elsewhere)
      const lock = join(elsewhere, "postgres", "postmaster.pid")
      const text = readFileSync(lock, "utf8")
      copyFileSync(lock, join(dataDir, "postgres", "postmaster.pid"))
      yield* starts(dataDir)
      assert.strictEqual(readFileSync(lock, "utf8").split("\n")[0], text.split("\n")[0])
      yield* Effect.sleep(500)
      process.kill(Number(text.split("\n")[0]), 0)
    }).pipe(Effect.scoped)
  )

  it.live("names the file that is missing or damaged, where it cannot start without it", () =>
    Effect.gen(function* () {
      const dataDir = yield* used
      const control = join(dataDir, "postgres", "global", "pg_control")
      assert.isTrue(existsSync(control))
      copyFileSync("/bin/true", control)
      const refused = yield* Effect.exit(use(dataDir))
      assert.isTrue(Exit.isFailure(refused))
      assert.include(String(refused), join(dataDir, "postgres"))
    }).pipe(Effect.scoped)
  )
})
