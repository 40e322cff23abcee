import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as CallSink from "#src/llm/usage/CallSink.ts"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { callBatch, callRecord, charged } from "./Calls.ts"

/** The number of rows of each call in the store; anything but once is a loss or a double. */
const storedIds = Effect.gen(function* () {
  const clickhouse = yield* ClickHouse
  const rows = yield* clickhouse.query<{ id: string }>("SELECT id FROM calls ORDER BY seq")
  return rows.map(({ id }) => id)
})

/** A ClickHouse that loses the rows of its first insert in a crash, but not the memory of the token. */
const forgetful = Layer.effect(
  ClickHouse,
  Effect.gen(function* () {
    const clickhouse = yield* ClickHouse
    let isFirst = true
    const insert: ClickHouseService["insert"] = (table, columns, body, options) => {
      const done = clickhouse.insert(table, columns, body, options)
      if (!isFirst) return done
      isFirst = false
      const lost = clickhouse.command(`DELETE FROM ${table} WHERE true`)
      const cut = Effect.fail(new ClickHouseUnavailable({ problem: "cut", cause: undefined }))
      return Effect.andThen(Effect.andThen(done, lost), cut)
    }
    return { ...clickhouse, insert }
  })
)

const calls = Array.from({ length: 5 }, (_, index) => callRecord({ promptTokens: index }))
const ids = calls.map(({ id }) => id)

describe("the sink of calls", () => {
  it.effect("writes every field of a call as it was", () =>
    Effect.gen(function* () {
      const sink = yield* CallSink.make
      const clickhouse = yield* ClickHouse
      const endedAt = Date.UTC(2026, 10, 21, 10, 20, 30, 7)
      const call = callRecord({
        source: "agent",
        startedAt: endedAt - 1234.4,
        endedAt,
        requested: 'collection/"ä\n\\',
        resolved: "a/b",
        collection: "col_1",
        kind: "embeddings",
        streamed: true,
        status: 502,
        errorCode: "upstream_error",
        success: false,
        attempts: 3,
        promptTokens: Number.MAX_SAFE_INTEGER,
        completionTokens: 12,
        cachedTokens: 5,
        firstTokenMillis: 88.6,
        settlement: { charge: "123456789012345678901234567890", loss: "17", covered: true, draws: [] }
      })
      yield* sink.write(callBatch([call]))
      const [row] = yield* clickhouse.query(
        `SELECT * EXCEPT (log_id, seq, ended, prompt_tokens, completion_tokens, cached_tokens, charge, loss),
          toUnixTimestamp64Milli(ended)::String AS ended, prompt_tokens::String AS prompt_tokens, completion_tokens::String AS
          completion_tokens, cached_tokens::String AS cached_tokens, charge::String AS charge, loss::String AS loss FROM calls`
      )
      assert.deepStrictEqual(row, {
        id: call.id,
        user_id: call.userId,
        key_id: call.keyId,
        source: "agent",
        ended: String(endedAt),
        duration_ms: 1234,
        first_token_ms: 89,
        requested: call.requested,
        resolved: "a/b",
        collection: "col_1",
        kind: "embeddings",
        streamed: true,
        status: 502,
        error_code: "upstream_error",
        success: false,
        attempts: 3,
        prompt_tokens: String(Number.MAX_SAFE_INTEGER),
        completion_tokens: "12",
        cached_tokens: "5",
        charge: "123456789012345678901234567890",
        loss: "17",
        covered: true
      })
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("takes what a clock that jumped or a lying upstream left in a record", () =>
    Effect.gen(function* () {
      const sink = yield* CallSink.make
      const strange = [
        callRecord({ startedAt: Date.now() + 1e9, promptTokens: -5, completionTokens: Infinity }),
        callRecord({ startedAt: 0, promptTokens: 1e300, firstTokenMillis: -1, attempts: 1e9 }),
        callRecord({ settlement: charged(10n ** 30n) })
      ]
      yield* sink.write(callBatch(strange))
      assert.deepStrictEqual(
        yield* storedIds,
        strange.map(({ id }) => id)
      )
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("takes records of a log from before they were rows", () =>
    Effect.gen(function* () {
      const sink = yield* CallSink.make
      const { records, ...batch } = callBatch(calls)
      const payloads = calls.map((call) => Buffer.from(JSON.stringify(call)))
      const mixed = records.map((record, index) =>
        index % 2 === 0 ? { ...record, payload: payloads[index] ?? assert.fail() } : record
      )
      yield* sink.write({ ...batch, records: mixed })
      assert.deepStrictEqual(yield* storedIds, ids)
      const clickhouse = yield* ClickHouse
      const rows = yield* clickhouse.query("SELECT prompt_tokens::String AS tokens FROM calls ORDER BY seq")
      assert.deepStrictEqual(
        rows,
        calls.map(({ promptTokens }) => ({ tokens: String(promptTokens) }))
      )
    }).pipe(Effect.provide(TestStores.layer))
  )

  it.effect("writes a batch again whose token the store remembers and whose rows it lost", () =>
    Effect.gen(function* () {
      const sink = yield* CallSink.make
      const batch = callBatch(calls)
      assert.strictEqual((yield* Effect.flip(sink.write(batch)))._tag, "SinkUnavailable")
      assert.deepStrictEqual(yield* storedIds, [])
      yield* sink.write(batch)
      assert.deepStrictEqual(yield* storedIds, ids)
    }).pipe(Effect.provide(forgetful.pipe(Layer.provideMerge(TestStores.layer))))
  )

  it.effect("writes only what is missing of a batch that a crash left in flight", () =>
    Effect.gen(function* () {
      const sink = yield* CallSink.make
      yield* sink.write(callBatch(calls.slice(0, 2)))
      yield* sink.write(callBatch(calls, { recovering: true }))
      yield* sink.write(callBatch(calls, { recovering: true }))
      assert.deepStrictEqual(yield* storedIds, ids)
    }).pipe(Effect.provide(TestStores.layer))
  )
})
