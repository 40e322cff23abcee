import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { TestClock } from "effect/testing"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { FileFailed } from "#streams/kernel/LogFailure.ts"
import { LogFiles, type LogFileSystem, nodeLogFiles } from "#streams/kernel/LogFiles.ts"
import { decode } from "#streams/llm/CallRow.ts"
import { countCall } from "#src/llm/usage/CallCounters.ts"
import * as CallLog from "#src/llm/usage/CallLog.ts"
import { readAll, temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { callRecord, charged } from "./Calls.ts"

const consumers = Object.values(CallLog.callLogConsumers)

/** Node's files; while `isFull` nothing can be written. */
const disk = { isFull: false }
const files: LogFileSystem = {
  ...nodeLogFiles,
  open: (path, mode) =>
    Effect.map(nodeLogFiles.open(path, mode), (file) => {
      const full = () =>
        new FileFailed({ operation: "write", path, code: "ENOSPC", cause: new Error("ENOSPC") })
      return {
        ...file,
        write: (bytes, position) =>
          Effect.suspend(() => (disk.isFull ? Effect.fail(full()) : file.write(bytes, position))),
        writeNow: (bytes, position) => (disk.isFull ? full() : file.writeNow(bytes, position))
      }
    })
}

const idsIn = (log: DurableLog.DurableLog) =>
  Effect.map(readAll(log, "ledger"), (records) => records.map(({ payload }) => decode(payload).id))

describe("the log of calls", () => {
  it.effect("keeps what the log refuses, says so, and writes it once when there is room", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const calls = Array.from({ length: 6 }, () => callRecord())
      yield* Effect.gen(function* () {
        const log = yield* DurableLog.open({ directory, consumers, writeThrough: true })
        const callLog = yield* CallLog.make(log, 100, () => undefined)
        callLog.append(calls[0] ?? callRecord())
        assert.isFalse(callLog.isFailing())
        disk.isFull = true
        for (const call of calls.slice(1)) callLog.append(call)
        assert.isTrue(callLog.isFailing())
        yield* TestClock.adjust(1000)
        assert.isTrue(callLog.isFailing())
        disk.isFull = false
        while (callLog.pending() > 0) {
          yield* TestClock.adjust(100)
          yield* Effect.promise(() => new Promise(setImmediate))
        }
        assert.isFalse(callLog.isFailing())
      }).pipe(Effect.scoped, Effect.provideService(LogFiles, files))
      const found = yield* Effect.scoped(
        Effect.flatMap(DurableLog.open({ directory, consumers, writeThrough: true }), idsIn)
      )
      assert.sameMembers(
        found,
        calls.map(({ id }) => id)
      )
      assert.lengthOf(found, calls.length)
    }).pipe(Effect.scoped)
  )

  it.live.each(["alone", "together"])(
    "has every call of a process that was killed in the turn in which it ended, written %s",
    (way) =>
      Effect.gen(function* () {
        const directory = yield* temporaryDirectory
        const program = join(import.meta.dirname, "DyingCaller.ts")
        const died = spawnSync(process.execPath, [program, directory, way], { encoding: "utf8" })
        assert.strictEqual(died.signal, "SIGKILL", died.stderr)
        const said = died.stdout.trim().split("\n")
        assert.lengthOf(said, 20)
        const found = yield* Effect.scoped(
          Effect.flatMap(DurableLog.open({ directory, consumers, writeThrough: true }), idsIn)
        )
        assert.deepStrictEqual(found, said)
      }).pipe(Effect.scoped)
  )

  it.effect("counts calls for the metrics by status, tokens, charge and first token", () =>
    Effect.gen(function* () {
      const count = yield* countCall
      count(callRecord({ promptTokens: 7, completionTokens: 5, cachedTokens: 2, firstTokenMillis: 300 }))
      count(callRecord({ status: 429, success: false, errorCode: "rate_limit_exceeded", attempts: 2 }))
      count(callRecord({ source: "agent", settlement: charged(1_500_000_000_000n) }))
      const seen = (yield* Metric.snapshot).flatMap(({ attributes, id, state }) =>
        id.startsWith("signalbox_model_")
          ? [[`${id.slice(16)} ${Object.values(attributes ?? {}).join(" ")}`.trim(), state] as const]
          : []
      )
      const counts = Object.fromEntries(
        seen.map(([name, state]) => [name, "count" in state ? state.count : undefined])
      )
      assert.deepStrictEqual(counts, {
        "requests_total api chat 200": 1,
        "requests_total api chat 429": 1,
        "requests_total agent chat 200": 1,
        "failures_total rate_limit_exceeded": 1,
        attempts_total: 4,
        "tokens_total prompt": 7,
        "tokens_total completion": 5,
        "tokens_total cached": 2,
        charged_usd_total: 1.5,
        request_seconds: 3,
        first_token_seconds: 1
      })
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )
})
