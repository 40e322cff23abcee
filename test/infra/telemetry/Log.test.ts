import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Log from "#src/infra/telemetry/Log.ts"

const logged = (level: Parameters<typeof Log.layer>[0], effect: Effect.Effect<void>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    return Effect.as(
      Effect.provide(
        effect,
        Log.layer(level, (line) => void lines.push(line))
      ),
      lines
    )
  })

describe("the log", () => {
  it.effect("is one JSON object a line, with the request's id and the cause", () =>
    Effect.gen(function* () {
      const lines = yield* logged(
        "Info",
        Effect.annotateLogs(Effect.logError("It failed", new Error("disk")), {
          requestId: "req_1",
          attempt: 2
        })
      )
      const [line = ""] = lines
      assert.match(line, /^\{.*\}\n$/)
      const entry = JSON.parse(line)
      assert.deepInclude(entry, {
        level: "error",
        requestId: "req_1",
        attempt: 2,
        time: new Date(0).toISOString()
      })
      assert.match(`${entry.message} ${entry.cause}`, /It failed.*Error: disk/s)
    })
  )

  it.effect("cannot be given a line of his own by a caller, nor a terminal's commands", () =>
    Effect.gen(function* () {
      const path = '/\n{"level":"fatal"}\r\u001b[2J\u009b31m\u2028\u0000\ud800'
      const lines = yield* logged("Info", Effect.annotateLogs(Effect.logInfo(path), { path, level: "fatal" }))
      assert.strictEqual(lines.length, 1)
      const [line = ""] = lines
      // oxlint-disable-next-line no-control-regex
      assert.notMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
      assert.deepInclude(JSON.parse(line), { level: "info", path, message: path })
    })
  )

  it.effect("takes what JSON cannot hold", () =>
    Effect.gen(function* () {
      const cycle: Record<string, unknown> = {}
      cycle["self"] = cycle
      const lines = yield* logged("Info", Effect.logInfo("odd", cycle, 1n, undefined, Symbol("s")))
      assert.strictEqual(lines.length, 1)
      assert.match(JSON.parse(lines[0] ?? "").message, /^odd .* 1 undefined Symbol\(s\)$/)
    })
  )

  it.effect("leaves out what is below LOG_LEVEL", () =>
    Effect.gen(function* () {
      const speak = Effect.andThen(Effect.logWarning("low"), Effect.logError("high"))
      const lines = yield* logged("Error", speak)
      assert.deepStrictEqual(
        lines.map((line) => JSON.parse(line).message),
        ["high"]
      )
      assert.deepStrictEqual(yield* logged("None", speak), [])
    })
  )
})
