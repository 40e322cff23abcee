import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import * as fc from "fast-check"
import { usdOf } from "#schemas/llm/Money.ts"
import { countCall } from "#src/llm/usage/CallCounters.ts"
import type { CallRecord } from "#streams/llm/CallRecord.ts"
import { callRecord } from "./Calls.ts"

const calls: fc.Arbitrary<CallRecord> = fc
  .record({
    source: fc.constantFrom("api", "agent"),
    kind: fc.constantFrom("chat", "embeddings"),
    status: fc.constantFrom(200, 429, 499, 502),
    errorCode: fc.constantFrom("", "client_gone", "upstream_error"),
    attempts: fc.nat(5),
    promptTokens: fc.nat(100_000),
    completionTokens: fc.nat(100_000),
    cachedTokens: fc.nat(1_000),
    charge: fc.bigInt({ min: 0n, max: 10n ** 14n }),
    loss: fc.bigInt({ min: 0n, max: 2n })
  })
  .map(({ charge, loss, ...fields }) =>
    callRecord({
      ...fields,
      success: fields.errorCode === "",
      settlement: { charge: String(charge), loss: String(loss), covered: false, draws: [] }
    })
  )

/** The same counters, updated one by one. */
const plainly = (all: ReadonlyArray<CallRecord>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  const add = (name: string, amount: number) => counts.set(name, (counts.get(name) ?? 0) + amount)
  for (const name of ["attempts_total", "charged_usd_total"]) add(name, 0)
  for (const type of ["prompt", "completion", "cached"]) add(`tokens_total ${type}`, 0)
  for (const call of all) {
    add(`requests_total ${call.source} ${call.kind} ${call.status}`, 1)
    if (!call.success) add(`failures_total ${call.errorCode}`, 1)
    add("attempts_total", call.attempts)
    add("tokens_total prompt", call.promptTokens)
    add("tokens_total completion", call.completionTokens)
    add("tokens_total cached", call.cachedTokens)
    add("charged_usd_total", usdOf(BigInt(call.settlement.charge)))
    if (call.settlement.loss !== "0") add("loss_usd_total", usdOf(BigInt(call.settlement.loss)))
    add("request_seconds", 1)
  }
  return counts
}

const counted = (all: ReadonlyArray<CallRecord>) =>
  Effect.gen(function* () {
    const count = yield* countCall
    all.forEach(count)
    return new Map(
      (yield* Metric.snapshot).flatMap(({ attributes, id, state }) =>
        id.startsWith("signalbox_model_") && "count" in state
          ? [[`${id.slice(16)} ${Object.values(attributes ?? {}).join(" ")}`.trim(), Number(state.count)]]
          : []
      )
    )
  }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()), Effect.runSync)

describe("the counters of calls", () => {
  it("show what counting one by one comes to", () => {
    fc.assert(
      fc.property(fc.array(calls, { maxLength: 30 }), (all) => {
        const seen = counted(all)
        const expected = plainly(all)
        assert.sameMembers([...seen.keys()], [...expected.keys()])
        for (const [name, total] of expected)
          assert.closeTo(seen.get(name) ?? Number.NaN, total, 1e-6 * Math.max(1, total), name)
      })
    )
  })
})
