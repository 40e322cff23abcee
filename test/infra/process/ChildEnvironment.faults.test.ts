import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as EmbeddedClickHouse from "#src/infra/clickhouse/EmbeddedClickHouse.ts"
import * as EmbeddedPostgres from "#src/infra/postgres/EmbeddedPostgres.ts"
import { limits } from "#src/Limits.ts"

const secrets = ["UPSTREAM_API_KEY", "CLUSTER_SECRET", "AWS_SECRET_ACCESS_KEY", "NODE_OPTIONS"]

/** The variables that a child may see. */
const allowed = new Set(
  [
    "PATH HOME TMPDIR LANG TZ LC_ALL LD_LIBRARY_PATH UV_THREADPOOL_SIZE",
    "SIGNALBOX_CLICKHOUSE_CHILD NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE",
    // Of PostgreSQL itself and of the shell that guards it.
    "PGLOCALEDIR PGSYSCONFDIR PWD OLDPWD SHLVL _"
  ].flatMap((line) => line.split(" "))
)

const namesOf = (pid: number): ReadonlyArray<string> =>
  readFileSync(`/proc/${pid}/environ`, "utf8")
    .split("\0")
    .flatMap((line) => (line === "" ? [] : [line.slice(0, line.indexOf("="))]))

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "signalbox-children-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** This process with secrets in its environment, as a server's has. */
const withSecrets = Effect.acquireRelease(
  Effect.sync(() => {
    const before = secrets.map((name) => [name, process.env[name]] as const)
    for (const name of secrets) process.env[name] = name === "NODE_OPTIONS" ? "--no-warnings" : "a secret"
    return before
  }),
  (before) =>
    Effect.sync(() => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    })
)

describe.runIf(process.platform === "linux")("the environment of a child process", () => {
  it.live("has what it needs to run, and none of the server's secrets", () =>
    Effect.gen(function* () {
      const dataDir = yield* temporary
      yield* withSecrets
      yield* EmbeddedPostgres.start(dataDir, limits)
      const { pid } = yield* EmbeddedClickHouse.start(dataDir, limits)
      const postmaster = Number(readFileSync(join(dataDir, "postgres/postmaster.pid"), "utf8").split("\n")[0])
      for (const child of [postmaster, pid() ?? -1]) {
        assert.deepStrictEqual(
          namesOf(child).filter((name) => !allowed.has(name)),
          []
        )
      }
    }).pipe(Effect.scoped)
  )
})
