import { assert, layer } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { Quarantines } from "#src/infra/drains/Quarantines.ts"
import {
  appendAll,
  flushed,
  inDrain,
  notOnce,
  quarantineOf,
  refusedFlush,
  someMarks,
  stage,
  stateOf,
  throughOutage
} from "./DrainStage.ts"
import { drainTable, inStore, storedMarks } from "./DrainTable.ts"

layer(stage, { excludeTestServices: true })("a drain", (it) => {
  for (const one of drainTable) {
    it.effect(
      `${one.name}: shows a reader what was accepted before, and is seen for as long as it runs`,
      () =>
        Effect.gen(function* () {
          const { marks, prefix } = yield* someMarks(one, 20)
          yield* inDrain(
            one,
            Effect.gen(function* () {
              yield* appendAll(marks)
              yield* flushed
              assert.deepStrictEqual(yield* notOnce(one, marks, prefix), [])
              assert.isTrue((yield* Quarantines).all().has(one.name))
              if (one.component !== undefined)
                assert.strictEqual((yield* stateOf(one.component))?.status, "up")
              const found = yield* Metric.snapshot
              for (const name of one.metrics) {
                const metric = found.find(({ id }) => id === `signalbox_${name}`)
                assert.strictEqual(metric?.type, name.endsWith("_total") ? "Counter" : "Gauge", name)
              }
              assert.lengthOf(
                found.filter(({ attributes }) => attributes?.["log"] === one.name),
                3
              )
            })
          )
          assert.isFalse((yield* Quarantines).all().has(one.name))
        })
    )

    it.effect(
      `${one.name}: sets a record aside that its store refuses; the others go on, and a retry brings it in`,
      () =>
        inDrain(
          one,
          Effect.gen(function* () {
            const { marks, prefix } = yield* someMarks(one, 30)
            const [first = "", ...others] = marks
            const poison = marks[13] ?? ""
            const quarantine = yield* quarantineOf(one)
            yield* appendAll([first])
            yield* flushed
            yield* inStore(
              one,
              `ALTER TABLE ${one.table} ADD CONSTRAINT no_poison CHECK (${one.column} <> '${poison}')`
            )
            yield* appendAll(others)
            yield* flushed
            const good = marks.filter((mark) => mark !== poison)
            assert.deepStrictEqual(yield* notOnce(one, good, prefix), [])
            assert.isFalse((yield* storedMarks(one, prefix)).has(poison))
            const [record, ...rest] = quarantine.list()
            assert.isDefined(record)
            assert.lengthOf(rest, 0)
            assert.include(record.problem, "no_poison")
            assert.deepInclude(yield* stateOf("quarantine"), { status: "degraded" })
            assert.include((yield* stateOf("quarantine"))?.detail, `1 of ${one.name}`)
            assert.strictEqual((yield* Effect.flip(quarantine.retry(record.offset)))._tag, "SinkRefused")
            yield* inStore(one, `ALTER TABLE ${one.table} DROP CONSTRAINT no_poison`)
            yield* quarantine.retry(record.offset)
            assert.deepStrictEqual(yield* notOnce(one, marks, prefix), [])
            assert.deepStrictEqual(quarantine.list(), [])
            assert.strictEqual((yield* Effect.flip(quarantine.drop(record.offset)))._tag, "NotSetAside")
          })
        )
    )

    it.effect(
      `${one.name}: sets nothing aside while its store takes nothing at all, and goes on when it does`,
      () =>
        inDrain(
          one,
          Effect.gen(function* () {
            const { marks, prefix } = yield* someMarks(one, 30)
            const quarantine = yield* quarantineOf(one)
            const rename = (from: string, to: string) =>
              inStore(
                one,
                one.store === "clickhouse"
                  ? `RENAME TABLE ${from} TO ${to}`
                  : `ALTER TABLE ${from} RENAME TO ${to}`
              )
            yield* rename(one.table, "elsewhere")
            yield* appendAll(marks)
            yield* refusedFlush
            yield* Effect.sleep(300)
            assert.deepStrictEqual(quarantine.list(), [])
            if (one.component !== undefined)
              assert.strictEqual((yield* stateOf(one.component))?.status, "degraded")
            yield* rename("elsewhere", one.table)
            yield* flushed
            assert.deepStrictEqual(yield* notOnce(one, marks, prefix), [])
            assert.deepStrictEqual(quarantine.list(), [])
          })
        )
    )

    it.effect(
      `${one.name}: fails its readers while its store is away, and has everything once when it is back`,
      () => throughOutage(one, "refuse")
    )
  }
})
