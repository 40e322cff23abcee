import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Batcher from "#streams/kernel/Batcher.ts"
import type { BatchPolicy } from "#streams/kernel/BatchPolicy.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { LogFiles } from "#streams/kernel/LogFiles.ts"
import type { QuarantineLimits } from "#streams/kernel/Quarantine.ts"
import { SinkRefused, SinkUnavailable, type Sink, type SinkBatch } from "#streams/kernel/Sink.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { noFaults, SimulatedDisk } from "./SimulatedDisk.ts"
import { appendTexts, texts } from "./TemporaryLog.ts"

/** A sink that refuses every batch with a record that `refuses` names, and keeps the others once. */
class PickySink implements Sink {
  refuses: (text: string) => boolean = (text) => text.startsWith("bad")
  blames: SinkRefused["blames"] = "record"
  failure: SinkUnavailable | SinkRefused | undefined
  checked: SinkUnavailable | SinkRefused | undefined
  readonly taken = new Map<number, string>()
  readonly sizes: Array<number> = []
  readonly check = Effect.suspend(() =>
    this.checked === undefined ? Effect.void : Effect.fail(this.checked)
  )

  readonly write = (batch: SinkBatch): Effect.Effect<void, SinkUnavailable | SinkRefused> =>
    Effect.suspend(() => {
      this.sizes.push(batch.records.length)
      if (this.failure !== undefined) return Effect.fail(this.failure)
      if (texts(batch.records).some(this.refuses)) return Effect.fail(refused(this.blames))
      for (const [index, text] of texts(batch.records).entries()) this.taken.set(batch.from + index, text)
      return Effect.void
    })
}

const refused = (blames: SinkRefused["blames"]) =>
  new SinkRefused({ problem: "the number 1e39 is out of range", cause: undefined, blames })

const policy: BatchPolicy = { maxRecords: 64, maxBytes: 10_000, maxAgeMillis: 10 }

const names = (count: number, bad: ReadonlyArray<number>): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${bad.includes(index) ? "bad" : "good"} ${index}`)

const settled = TestClock.adjust(0).pipe(Effect.repeat({ times: 60 }))
const later = TestClock.adjust(10_000).pipe(Effect.andThen(settled), Effect.repeat({ times: 3 }))

/** One life of a process: a log on the disk, the sink, and the batcher between them. */
const begin = Effect.fnUntraced(function* (disk: SimulatedDisk, sink: Sink, quarantine?: QuarantineLimits) {
  const opened = {
    directory: "log",
    consumers: ["sink"],
    ...(quarantine === undefined ? {} : { quarantine })
  }
  const log = yield* DurableLog.open(opened).pipe(Effect.provideService(LogFiles, disk.mount()))
  const consumer = log.consumer("sink")
  const batcher = yield* Batcher.run({ name: "events", log, consumer, sink, policy })
  return { log, consumer, batcher }
})

const newDisk = () => new SimulatedDisk(new SeededRandom(1))

/** The log lines of an effect, from information upwards. */
const saying = <A, E, R>(effect: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => {
    lines.push(`${logLevel} ${Array.isArray(message) ? String(message[0]) : String(message)}`)
  })
  return Effect.provide(effect(lines), Layer.fresh(Logger.layer([logger])))
}

describe("a record that the sink takes in no company", () => {
  for (const bad of [0, 1, 30, 62, 63]) {
    it.effect(
      `is found at place ${bad} of a batch and set aside; the others are taken, in one reader's wait`,
      () =>
        Effect.scoped(
          Effect.gen(function* () {
            const sink = new PickySink()
            const { batcher, consumer, log } = yield* begin(newDisk(), sink)
            yield* appendTexts(log, names(64, [bad]))
            yield* batcher.flushTo(64)
            assert.deepStrictEqual([...sink.taken.keys()].toSorted((a, b) => a - b).length, 63)
            assert.isFalse(sink.taken.has(bad))
            assert.strictEqual(consumer.committed(), 64)
            const [aside, ...others] = batcher.quarantine.list()
            assert.lengthOf(others, 0)
            assert.deepInclude(aside, { offset: bad, problem: "the number 1e39 is out of range" })
            assert.isBelow(sink.sizes.length, 30, "halving, not one by one")
            assert.isUndefined(batcher.stats().trouble)
          })
        )
    )
  }

  it.effect("is set aside on an idle server too, with nothing beside it", () =>
    saying((lines) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { batcher, log } = yield* begin(newDisk(), new PickySink())
          yield* appendTexts(log, ["bad 0"])
          yield* batcher.flushTo(1)
          assert.lengthOf(batcher.quarantine.list(), 1)
          assert.deepStrictEqual(
            lines.filter((line) => line.includes("events:")),
            ["Warn events: a record was set aside, and the others go on"]
          )
        })
      )
    )
  )

  it.effect("is known after a crash between setting it aside and the commit, wherever that comes", () =>
    Effect.gen(function* () {
      let crashes = 0
      for (let operations = 1; operations < 60; operations++) {
        const disk = newDisk()
        const sink = new PickySink()
        const scope = yield* Scope.make()
        const { log } = yield* begin(disk, sink).pipe(Scope.provide(scope))
        yield* appendTexts(log, names(8, [3, 4]))
        disk.crashAfter(operations, () => void crashes++)
        yield* later
        disk.restartMachine()
        disk.faults = noFaults
        yield* Effect.scoped(
          Effect.gen(function* () {
            const after = yield* begin(disk, sink)
            yield* after.batcher.flushTo(8)
            assert.deepStrictEqual(
              after.batcher.quarantine.list().map(({ offset }) => offset),
              [3, 4]
            )
            assert.deepStrictEqual([...sink.taken.keys()].toSorted(), [0, 1, 2, 5, 6, 7])
          })
        )
      }
      assert.isAbove(crashes, 20)
    })
  )

  it.effect("comes in by a retry once the cause is gone, and goes by a drop", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const disk = newDisk()
        const sink = new PickySink()
        const { batcher, log } = yield* begin(disk, sink)
        yield* appendTexts(log, names(8, [2, 5]))
        yield* batcher.flushTo(8)
        assert.strictEqual((yield* Effect.flip(batcher.quarantine.retry(2)))._tag, "SinkRefused")
        assert.strictEqual((yield* Effect.flip(batcher.quarantine.retry(3)))._tag, "NotSetAside")
        sink.refuses = () => false
        yield* batcher.quarantine.retry(2)
        assert.strictEqual(sink.taken.get(2), "bad 2")
        yield* batcher.quarantine.drop(5)
        assert.isFalse(sink.taken.has(5))
        assert.deepStrictEqual(batcher.quarantine.stats(), { records: 0, bytes: 0, dropped: 0 })
        assert.strictEqual((yield* Effect.flip(batcher.quarantine.drop(5)))._tag, "NotSetAside")
      })
    )
  )

  it.effect("pushes the oldest out where the quarantine is full, which is said", () =>
    saying((lines) =>
      Effect.scoped(
        Effect.gen(function* () {
          const limits = { maxRecords: 3, maxBytes: 1000 }
          const { batcher, log } = yield* begin(newDisk(), new PickySink(), limits)
          yield* appendTexts(log, names(20, [1, 3, 5, 7, 9]))
          yield* batcher.flushTo(20)
          assert.deepStrictEqual(
            batcher.quarantine.list().map(({ offset }) => offset),
            [5, 7, 9]
          )
          assert.deepInclude(batcher.quarantine.stats(), { records: 3, dropped: 2 })
          assert.lengthOf(
            lines.filter((line) => line.startsWith("Error") && line.includes("oldest record is lost")),
            2
          )
        })
      )
    )
  )
})

describe("nothing is set aside", () => {
  const outages: ReadonlyArray<readonly [string, (sink: PickySink) => void]> = [
    [
      "by an outage",
      (sink) => void (sink.failure = new SinkUnavailable({ problem: "ECONNREFUSED", cause: 0 }))
    ],
    [
      "by a sink that refuses every record, whatever it blames",
      (sink) => void (sink.failure = refused("record"))
    ],
    [
      "by a sink whose table is missing",
      (sink) => {
        sink.failure = refused("unknown")
        sink.checked = refused("unknown")
      }
    ],
    [
      "by a sink that answers, and whose table is missing, when it is asked",
      (sink) => {
        sink.failure = refused("record")
        sink.checked = refused("unknown")
      }
    ],
    ["by a sink that has no memory even for one", (sink) => void (sink.failure = refused("size"))]
  ]
  for (const [name, breakIt] of outages) {
    it.effect(`${name}; it is said once, readers hear it, and all is taken when it is over`, () =>
      saying((lines) =>
        Effect.scoped(
          Effect.gen(function* () {
            const sink = new PickySink()
            const { batcher, log } = yield* begin(newDisk(), sink)
            breakIt(sink)
            yield* appendTexts(log, names(40, []))
            yield* later
            const allowed = name.includes("whatever it blames") ? 8 : 0
            assert.isAtMost(batcher.quarantine.list().length, allowed)
            const { problem } = yield* Effect.flip(batcher.flushTo(40))
            assert.strictEqual(batcher.stats().trouble?.problem, problem)
            assert.lengthOf(
              lines.filter((line) => line.startsWith("Warn events: records wait")),
              1
            )
            sink.failure = undefined
            sink.checked = undefined
            yield* later
            yield* batcher.flushTo(40)
            assert.strictEqual(sink.taken.size + batcher.quarantine.list().length, 40)
            assert.isUndefined(batcher.stats().trouble)
            assert.include(lines, "Info events: records are written again")
          })
        )
      )
    )
  }

  it.effect("while a whole batch is too large: parts of it are taken", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const sink = new PickySink()
        const write = sink.write
        const small: Sink = {
          check: sink.check,
          write: (batch) => (batch.records.length > 5 ? Effect.fail(refused("size")) : write(batch))
        }
        const { batcher, log } = yield* begin(newDisk(), small)
        yield* appendTexts(log, names(40, []))
        yield* batcher.flushTo(40)
        assert.strictEqual(sink.taken.size, 40)
        assert.lengthOf(batcher.quarantine.list(), 0)
      })
    )
  )

  it.effect("while the disk is full: the record waits, and is set aside when there is room", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const disk = newDisk()
        const sink = new PickySink()
        const { batcher, log } = yield* begin(disk, sink)
        yield* appendTexts(log, names(4, [1]))
        disk.faults = { ...noFaults, becomesFull: 1, becomesFree: 0 }
        yield* later
        assert.lengthOf(batcher.quarantine.list(), 0)
        disk.faults = noFaults
        yield* later
        yield* batcher.flushTo(4)
        assert.lengthOf(batcher.quarantine.list(), 1)
      })
    )
  )
})
