import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { visitorRange } from "#src/analytics/store/VisitorDays.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { forSeeds } from "#test/simulation/Seed.ts"
import { storedEvent } from "./Events.ts"
import { sinkBatch, storedSeqs } from "./SinkBatches.ts"
import { assertStored, stage, views } from "./SinkThreadStage.ts"

describe("the event sink in its thread", () => {
  it.live("has each event once, and its visits right, wherever the thread ends or a write is given up", () =>
    forSeeds(1, (random) =>
      Effect.gen(function* () {
        const { end, sink, threads } = yield* stage
        const batches = 8
        for (let at = 0; at < batches; at++) {
          const batch = sinkBatch(views(at * 20, (at + 1) * 20), { from: at * 20 })
          const write = yield* Effect.forkChild(sink.write(batch))
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, random.below(50))))
          if (random.below(2) === 0) yield* end
          else yield* Fiber.interrupt(write)
          yield* Fiber.await(write)
          yield* eventually("written", Effect.as(sink.write(batch), true))
        }
        yield* assertStored(batches * 20)
        assert.isAbove(threads.length, 1, "no thread was ended")
      }).pipe(Effect.scoped, Effect.provide(TestStores.layer))
    )
  )

  it.live("repeats a batch of a thread that died as after a crash, and does not rebuild before", () =>
    Effect.gen(function* () {
      const { end, sink } = yield* stage
      const { day, site } = storedEvent()
      const check = sink.rebuild(visitorRange({ site, day }, {}), true)
      yield* sink.write(sinkBatch(views(0, 3)))
      const clickhouse = yield* ClickHouse
      // Rows of five visitors take some seven seconds.
      yield* clickhouse.command(
        "ALTER TABLE visits ADD CONSTRAINT slow CHECK sleepEachRow(0.5) + sleepEachRow(0.49) + sleepEachRow(0.48) = 0"
      )
      const batch = sinkBatch(views(3, 6), { from: 3 })
      const write = yield* Effect.forkChild(sink.write(batch))
      const areEventsThere = Effect.map(storedSeqs, (seqs) => seqs.length === 6)
      yield* eventually("its events are there, and their visits under way", areEventsThere)
      yield* end
      assert.strictEqual((yield* Effect.flip(Fiber.join(write)))._tag, "SinkUnavailable")
      yield* clickhouse.command("ALTER TABLE visits DROP CONSTRAINT slow")
      // A token that the store remembers, whose rows it lost: only a batch that recovers is compared with what is there.
      yield* clickhouse.command("DELETE FROM events WHERE seq >= 3")
      const refused = yield* Effect.flip(check)
      assert.strictEqual(refused.problem, "a batch has to be repeated first")
      yield* sink.write(batch)
      assert.deepInclude(yield* check, { events: 6, missing: 0, wrong: 0, surplus: 0 })
      yield* assertStored(6)
    }).pipe(Effect.provide(TestStores.layer))
  )
})
