import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type PicoUsd, usdOf } from "#schemas/llm/Money.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { usageWindows, type UsageWindow } from "#streams/llm/UsageWindows.ts"
import { UserDirectory } from "#src/accounts/Users.ts"
import { CallDrain } from "#src/llm/usage/CallDrain.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { Usage } from "#src/llm/usage/Usage.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { switchedBy } from "#test/infra/clickhouse/SwitchedClickHouse.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { stoppedAt } from "#test/analytics/StoppedClock.ts"
import { callRecord, charged } from "./Calls.ts"

const outage = { isAway: false, isStuck: false }

const room = Usage.layer.pipe(
  Layer.provideMerge(CallDrain.layer),
  Layer.provideMerge(Layer.merge(CallLog.layer, UserDirectory.layer)),
  Layer.provideMerge(switchedBy(outage)),
  Layer.provideMerge(TestStores.layer)
)

/** A user whose account was made at an instant. */
const makeUser = Effect.fnUntraced(function* (madeMillis: number) {
  const sql = yield* SqlClient
  const id = `usr_${String(++users).padStart(22, "0")}`
  yield* sql`INSERT INTO users ${sql.insert({
    id,
    email: `${id}@b.example`,
    name: "A",
    role: "user",
    created_at: new Date(madeMillis)
  })}`
  yield* (yield* UserDirectory).refreshNow
  return id
})
let users = 0

const finish = Effect.fnUntraced(function* (calls: ReadonlyArray<CallRecord>) {
  const { append } = yield* CallLog
  for (const call of calls) append(call)
})

const dayMillis = 86_400_000

/** By definition, from the text of the instant: the start of a window's bucket, or of the window. */
const cut = (millis: number, unit: "minute" | "hour" | "day" | "month" | "year"): number => {
  const text = new Date(millis).toISOString()
  const rest = "0000-01-01T00:00:00.000Z"
  const length = { minute: 16, hour: 13, day: 10, month: 7, year: 4 }[unit]
  return Date.parse(text.slice(0, length) + rest.slice(length))
}

const windowStart = (name: UsageWindow, nowMillis: number, madeMillis: number): number => {
  if (name === "ever") return madeMillis
  if (name !== "week") return cut(nowMillis, name)
  let day = cut(nowMillis, "day")
  while (new Date(day).getUTCDay() !== 1) day -= dayMillis
  return day
}

const sumOf = (calls: ReadonlyArray<CallRecord>, valueOf: (call: CallRecord) => number): number =>
  calls.reduce((sum, call) => sum + valueOf(call), 0)

const costOf = (calls: ReadonlyArray<CallRecord>): PicoUsd =>
  calls.reduce((sum, call) => sum + BigInt(call.settlement.charge), 0n)

const figuresOf = (calls: ReadonlyArray<CallRecord>) => ({
  requests: calls.length,
  totalTokens: sumOf(calls, (call) => call.promptTokens + call.completionTokens),
  costUsd: usdOf(costOf(calls))
})

const windowOf = (name: UsageWindow, calls: ReadonlyArray<CallRecord>) => ({
  window: name,
  ...figuresOf(calls),
  successes: calls.filter(({ success }) => success).length,
  errors: calls.filter(({ success }) => !success).length,
  promptTokens: sumOf(calls, (call) => call.promptTokens),
  completionTokens: sumOf(calls, (call) => call.completionTokens)
})

const bucketUnits = {
  hour: "minute",
  day: "hour",
  week: "day",
  month: "day",
  year: "month",
  ever: "month"
} as const

/** Instants at which calendars go wrong: the week and the year begin apart, a leap day, the end of a month. */
const instants = [
  "2026-11-21T11:20:30.500Z",
  "2027-01-01T00:00:00.000Z",
  "2027-01-03T23:59:59.999Z",
  "2028-02-29T12:00:00.000Z",
  "2026-03-31T23:59:59.999Z",
  "2026-06-01T00:00:00.000Z"
].map((text) => Date.parse(text))

/** Calls around every boundary of every window, and anywhere since the account was made. */
const callsFor = (userId: string, nowMillis: number, madeMillis: number, random: SeededRandom) => {
  const edges = usageWindows.flatMap((name) => {
    const start = windowStart(name, nowMillis, madeMillis)
    return [start - 1, start, start + 1]
  })
  const anywhere = Array.from(
    { length: 60 },
    () => madeMillis + random.next() ** 4 * (nowMillis - madeMillis)
  )
  return [...edges, ...anywhere, nowMillis]
    .map((at) => Math.trunc(at))
    .filter((at) => at >= madeMillis && at <= nowMillis)
    .map((endedAt) => {
      const success = random.chance(0.8)
      return callRecord({
        userId,
        endedAt,
        source: random.chance(0.3) ? "agent" : "api",
        resolved: random.chance(0.1) ? "" : `a/model-${random.below(14)}`,
        success,
        status: success ? 200 : 502,
        promptTokens: random.below(5000),
        completionTokens: random.below(5000),
        settlement: charged(random.chance(0.3) ? 0n : BigInt(random.below(1e9)) ** 2n)
      })
    })
}

describe("usage", () => {
  layer(room, { excludeTestServices: true })((it) => {
    for (const [index, nowMillis] of instants.entries()) {
      it.effect(
        `counts every window, bucket and model as a recount does at ${new Date(nowMillis).toISOString()}`,
        () =>
          Effect.gen(function* () {
            const random = new SeededRandom(index + 1)
            const made = nowMillis - 500 * dayMillis - random.below(dayMillis)
            const user = yield* makeUser(made)
            const calls = callsFor(user, nowMillis, made, random)
            yield* finish([...calls, callRecord({ userId: yield* makeUser(made), endedAt: nowMillis })])
            const usage = yield* Usage
            for (const source of [undefined, "api", "agent"] as const) {
              const counted = calls.filter((call) => source === undefined || call.source === source)
              const all = yield* usage.windows(user, source).pipe(stoppedAt(nowMillis))
              for (const name of usageWindows) {
                const start = windowStart(name, nowMillis, made)
                const inside = counted.filter(({ endedAt }) => endedAt >= start)
                const { resetsAt, since, ...figures } = all[name]
                assert.deepStrictEqual(figures, windowOf(name, inside), name)
                assert.strictEqual(since, new Date(start).toISOString())
                assert.strictEqual(figures.successes + figures.errors, figures.requests)
                if (name === "ever") assert.isNull(resetsAt)
                else {
                  const reset = Date.parse(resetsAt ?? "")
                  assert.strictEqual(windowStart(name, reset - 1, made), start)
                  assert.strictEqual(windowStart(name, reset, made), reset)
                }

                const one = yield* usage.ofWindow(user, name, source).pipe(stoppedAt(nowMillis))
                assert.deepStrictEqual(one.usage, { [name]: all[name] })
                const unit = bucketUnits[name]
                assert.deepStrictEqual(
                  one.series.map(({ bucket, ...rest }) => [bucket, rest]),
                  one.series.map(({ bucket }) => {
                    const own = inside.filter(({ endedAt }) => cut(endedAt, unit) === Date.parse(bucket))
                    return [
                      bucket,
                      { ...figuresOf(own), errors: own.filter(({ success }) => !success).length }
                    ]
                  })
                )
                assert.strictEqual(one.series[0]?.bucket, new Date(cut(start, unit)).toISOString())
                assert.strictEqual(one.series.at(-1)?.bucket, new Date(cut(nowMillis, unit)).toISOString())
                for (const [at, { bucket }] of one.series.entries()) {
                  const before = one.series[at - 1]?.bucket
                  if (before !== undefined) {
                    assert.strictEqual(cut(Date.parse(bucket) - 1, unit), Date.parse(before), "a gap")
                  }
                }
                const models = [...new Set(inside.map(({ resolved }) => resolved))]
                  .filter((model) => model !== "")
                  .map((model) => ({ model, calls: inside.filter(({ resolved }) => resolved === model) }))
                  .sort((a, b) => (costOf(b.calls) > costOf(a.calls) ? 1 : -1))
                const spenders = models.filter((model) => costOf(model.calls) > 0n).slice(0, 10)
                assert.deepStrictEqual(
                  one.topModels.slice(0, spenders.length),
                  spenders.map((model) => ({
                    model: model.model,
                    errors: model.calls.filter(({ success }) => !success).length,
                    ...figuresOf(model.calls)
                  }))
                )
                assert.lengthOf(one.topModels, Math.min(10, models.length))
              }
            }
          })
      )
    }

    it.effect("adds pico-dollars up exactly where floats would not", () =>
      Effect.gen(function* () {
        const now = Date.now()
        const user = yield* makeUser(now - 1000)
        const charge = 1_234_567_890_123_456_789n
        yield* finish(
          Array.from({ length: 1001 }, () => callRecord({ userId: user, settlement: charged(charge) }))
        )
        const { ever } = yield* (yield* Usage).windows(user, undefined)
        assert.strictEqual(ever.costUsd, usdOf(charge * 1001n))
      })
    )

    it.effect("shows a call to who asks right after it, before it is on disk", () =>
      Effect.gen(function* () {
        const user = yield* makeUser(Date.now() - 1000)
        const usage = yield* Usage
        for (const total of [1, 2, 3]) {
          yield* finish([callRecord({ userId: user })])
          assert.strictEqual((yield* usage.windows(user, undefined)).ever.requests, total)
        }
      })
    )

    it.effect("is all zeros, with buckets up to now, for who has called nothing", () =>
      Effect.gen(function* () {
        const now = Date.parse("2026-11-21T11:20:30.500Z")
        const user = yield* makeUser(now - 40 * dayMillis)
        const found = yield* (yield* Usage).ofWindow(user, "hour", undefined).pipe(stoppedAt(now))
        const zeros = { requests: 0, errors: 0, totalTokens: 0, costUsd: 0 }
        assert.deepStrictEqual(
          found.series,
          Array.from({ length: 21 }, (_, minute) => ({
            bucket: new Date(Date.parse("2026-11-21T11:00Z") + minute * 60_000).toISOString(),
            ...zeros
          }))
        )
        assert.deepStrictEqual(found.topModels, [])
      })
    )

    it.effect("fails while ClickHouse is away, loses nothing, and has it once when it is back", () =>
      Effect.gen(function* () {
        const user = yield* makeUser(Date.now() - 1000)
        const usage = yield* Usage
        yield* finish([callRecord({ userId: user })])
        outage.isAway = true
        assert.strictEqual((yield* Effect.flip(usage.windows(user, undefined)))._tag, "SinkUnavailable")
        yield* finish([callRecord({ userId: user }), callRecord({ userId: user })])
        outage.isAway = false
        const found = yield* Effect.retry(usage.windows(user, undefined), {
          while: ({ _tag }) => _tag === "SinkUnavailable"
        })
        assert.strictEqual(found.ever.requests, 3)
      })
    )
  })
})
