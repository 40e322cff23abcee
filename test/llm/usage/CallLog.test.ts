import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { decode } from "#streams/llm/CallRow.ts"
import * as CallLog from "#src/llm/usage/CallLog.ts"
import { seededRandom } from "#test/harness/SeededRandom.ts"
import { readAll, temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { callRecord } from "./Calls.ts"

const seed = Number(process.env["SEED"] ?? Date.now() % 2_147_483_647)
const consumers = Object.values(CallLog.callLogConsumers)

/** The log after the use of `CallLog`, read by one of its consumers. */
const written = (use: (calls: Effect.Success<ReturnType<typeof CallLog.make>>) => Promise<void>) =>
  Effect.gen(function* () {
    const log = yield* DurableLog.open({
      directory: yield* temporaryDirectory,
      consumers,
      writeThrough: true
    })
    const calls = yield* CallLog.make(log, 100, () => undefined)
    yield* Effect.promise(() => use(calls))
    while (calls.pending() > 0) yield* Effect.promise(() => new Promise(setImmediate))
    return (yield* readAll(log, "ledger")).map(({ payload }) => decode(payload))
  }).pipe(Effect.scoped)

describe("the log of calls", () => {
  it.live(`is the same whether the calls of a turn are written together or each alone (SEED=${seed})`, () =>
    Effect.gen(function* () {
      const random = seededRandom(seed)
      const turns = Array.from({ length: 40 }, () =>
        Array.from({ length: Math.floor(random() * 8) }, () =>
          // Some are so long that a turn is more than is written at once.
          callRecord({ requested: "m".repeat(random() < 0.1 ? 100_000 : 20) })
        )
      )
      const all = turns.flat()
      const alone = yield* written(async ({ append }) => all.forEach((call) => append(call)))
      const answered: Array<string> = []
      const together = yield* written(async ({ appendThen, log }) => {
        for (const turn of turns) {
          for (const call of turn)
            appendThen(call, () => {
              answered.push(call.id)
              assert.isAtLeast(log.nextOffset(), answered.length, "answered before it was written")
            })
          await new Promise(setImmediate)
        }
      })
      assert.deepStrictEqual(together, alone)
      assert.deepStrictEqual(
        answered,
        all.map(({ id }) => id)
      )
    })
  )
})
