import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Log from "#src/infra/telemetry/Log.ts"
import { RawClient } from "#test/front/RawClient.ts"
import { TestServer } from "#test/harness/TestServer.ts"

const live = { excludeTestServices: true } as const

/** Characters that a terminal or a viewer would take for more than text. */
// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

const record = (line: string): Record<string, unknown> => {
  assert.isTrue(line.endsWith("\n"))
  assert.notMatch(line.slice(0, -1), control)
  return JSON.parse(line)
}

const logged = (effect: Effect.Effect<void>, level: "Info" | "Debug" | "Error" = "Info") => {
  const lines: Array<string> = []
  return Effect.as(effect.pipe(Effect.provide(Log.layer(level, (line) => void lines.push(line)))), lines)
}

describe("a log line", () => {
  it.effect("is one line of words for people, which nobody's text can end or steer", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const text = Log.layer("Info", (line) => void lines.push(line), "text")
      yield* Effect.logWarning("Disk\nroot# \u001b[2J", new Error("why\u009b")).pipe(
        Effect.annotateLogs({ path: "/a\r\nERROR b", n: 2 }),
        Effect.provide(text)
      )
      const [line = ""] = lines
      assert.match(line, /^\d\d:\d\d:\d\d\.\d{3} WARN {2}Disk\\nroot# \\u001b\[2J /)
      assert.include(line, String.raw`path=/a\r\nERROR b n=2`)
      assert.include(line, String.raw`why\u009b`)
      for (const part of line.trimEnd().split("\n")) assert.notMatch(part, control)
      assert.isTrue(
        line
          .split("\n")
          .slice(1, -1)
          .every((part) => part.startsWith("  "))
      )
    })
  )

  it.effect("is one JSON object with time, level, message, annotations and cause", () =>
    Effect.gen(function* () {
      const [line = ""] = yield* logged(
        Effect.logWarning("Disk", { free: 3 }, new Error("why")).pipe(
          Effect.annotateLogs({ requestId: "req_1", n: 2 })
        )
      )
      const { message, time, ...rest } = record(line)
      assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.match(String(message), /^Disk \{"free":3\}/)
      assert.deepInclude(rest, { level: "warn", requestId: "req_1", n: 2 })
      assert.match(JSON.stringify(rest) + String(message), /why/)
    })
  )

  it.effect("cannot be forged or broken by what is logged", () =>
    Effect.gen(function* () {
      const evil = 'a\n{"level":"error","message":"forged"}\r\u001b[2J\u0085\u2028\u009b31m"'
      const cycle: Record<string, unknown> = { big: 1n }
      cycle["self"] = cycle
      const lines = yield* logged(
        Effect.all([
          Effect.log(evil),
          Effect.log("x").pipe(Effect.annotateLogs({ path: evil, [evil]: "key" })),
          Effect.log(cycle),
          Effect.log("x").pipe(Effect.annotateLogs({ level: "fake", time: "fake", message: "fake" })),
          Effect.logError("x", new Error(evil))
        ])
      )
      assert.lengthOf(lines, 5)
      const records = lines.map(record)
      assert.strictEqual(records[0]?.["message"], evil)
      assert.strictEqual(records[1]?.["path"], evil)
      assert.deepInclude(records[3], { level: "info", message: "x" })
    })
  )

  it.effect("is written from LOG_LEVEL upwards", () =>
    Effect.gen(function* () {
      const all = Effect.all([Effect.logDebug("d"), Effect.logInfo("i"), Effect.logError("e")])
      const counts = [yield* logged(all, "Debug"), yield* logged(all, "Info"), yield* logged(all, "Error")]
      assert.deepStrictEqual(
        counts.map(({ length }) => length),
        [3, 2, 1]
      )
    })
  )
})

layer(TestServer.own(), live)("an unhandled fault", (it) => {
  it.effect("is answered 500 with a generic text and the request id, in the endpoint's family", () =>
    Effect.gen(function* () {
      const { ask } = yield* TestServer
      const answers = yield* broken(
        Effect.all([
          ask("GET", "/api/v1/files/fil_1", { headers: { "x-request-id": "mine-1" } }),
          ask("GET", "/api/v1/keys")
        ])
      )
      const [flat, nested] = answers
      assert.deepStrictEqual([flat.status, flat.json], [500, { error: "Internal error (request mine-1)" }])
      assert.strictEqual(flat.headers.get("x-request-id"), "mine-1")
      const message = `Internal error (request ${nested.headers.get("x-request-id")})`
      const error = { message, type: "server_error", code: "internal_error", param: null }
      assert.deepStrictEqual([nested.status, nested.json], [500, { error }])
    })
  )

  it.effect("is logged once, with its cause, the request's id, method and path, and never the key", () =>
    Effect.gen(function* () {
      const { adminKey, ask, logged } = yield* TestServer
      const headers = { "x-request-id": "mine-2" }
      yield* broken(ask("DELETE", "/api/v1/files/fil_2?token=secret", { headers }))
      const lines = logged().filter((line) => line.includes("mine-2"))
      assert.lengthOf(lines, 1)
      const found = record(lines[0] ?? "")
      assert.deepInclude(found, {
        level: "error",
        requestId: "mine-2",
        method: "DELETE",
        path: "/api/v1/files/fil_2"
      })
      assert.match(String(found["cause"]), /relation "files" does not exist/)
      for (const line of logged()) assert.notInclude(line, adminKey)
    })
  )

  it.effect("logs no line of the caller's making, whatever path and headers are sent", () =>
    Effect.gen(function* () {
      const { adminKey, logged, port } = yield* TestServer
      const before = logged().length
      const forged = '%0a{"level":"error"}%0d\u0085\u2028\u001b[2J'
      yield* broken(
        Effect.promise(async () => {
          for (const head of [`GET /api/v1/files/${forged}`, `GET /api/v1/files/x"}?${forged}`]) {
            const client = await RawClient.open(port)
            await client.send(
              `${head} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${adminKey}\r\n` +
                `X-Request-Id: {"level":"fatal"}\u0085\r\nUser-Agent: ${forged}\r\n\r\n`
            )
            await client.closed()
          }
        })
      )
      for (const line of logged().slice(before)) {
        const { path, requestId } = record(line)
        if (path !== undefined) assert.match(String(requestId), /^req_[0-9A-Za-z]{22}$/)
      }
    })
  )
})

/** Runs something while the tables of files and keys are gone: a fault that no code expects. */
const broken = <A>(effect: Effect.Effect<A>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const rename = (from: string, to: string) =>
      Effect.orDie(sql.unsafe(`ALTER TABLE ${from} RENAME TO ${to}`))
    return yield* Effect.acquireUseRelease(
      Effect.andThen(rename("files", "files_away"), rename("keys", "keys_away")),
      () => effect,
      () => Effect.andThen(rename("files_away", "files"), rename("keys_away", "keys"))
    )
  })
