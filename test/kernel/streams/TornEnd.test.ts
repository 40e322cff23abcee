import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { captureLog } from "#test/harness/CapturedLog.ts"
import { bytes, readAll, temporaryDirectory, texts } from "./TemporaryLog.ts"

describe("a log whose end is torn", () => {
  it.live("says how many records of which file it cut, and nothing where nothing was", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const session = <A, E>(use: (log: DurableLog.DurableLog) => Effect.Effect<A, E>) =>
        Effect.scoped(Effect.flatMap(DurableLog.open({ directory, consumers: ["sink"] }), use))
      const appendAll = (log: DurableLog.DurableLog, records: ReadonlyArray<string>) =>
        Effect.callback<void, DurableLog.LogUnavailable>((resume) => {
          log.appendAll(records.map(bytes), (error) =>
            resume(error === undefined ? Effect.void : Effect.fail(error))
          )
        })
      yield* session((log) => appendAll(log, ["kept"]))
      yield* session((log) =>
        appendAll(
          log,
          Array.from({ length: 20 }, (_, index) => `torn ${index}`)
        )
      )
      const file = join(directory, fs.readdirSync(directory).find((name) => name.endsWith(".segment")) ?? "")
      fs.truncateSync(file, fs.statSync(file).size - 5)
      const said = yield* captureLog(
        session((log) =>
          Effect.map(readAll(log, "sink"), (left) => assert.deepStrictEqual(texts(left), ["kept"]))
        )
      )
      assert.include(said, file)
      assert.match(said, /\b20 records\b/)
      assert.strictEqual(yield* captureLog(session(() => Effect.void)), "")
    }).pipe(Effect.scoped)
  )
})
