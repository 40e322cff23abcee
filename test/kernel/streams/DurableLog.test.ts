import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { appendTexts, bytes, readAll, temporaryDirectory, texts } from "./TemporaryLog.ts"

const numbered = (count: number, length = 4): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${index}`.padEnd(length, "."))

const segmentsIn = (directory: string): ReadonlyArray<string> =>
  fs
    .readdirSync(directory)
    .filter((name) => name.endsWith(".segment"))
    .sort()

/** Opens, does something, closes. */
const session = <A, E>(
  options: DurableLog.LogOptions,
  use: (log: DurableLog.DurableLog) => Effect.Effect<A, E, Scope.Scope>
) => Effect.scoped(Effect.flatMap(DurableLog.open(options), use))

describe("a durable log", () => {
  it.live("gives back what was acknowledged, from memory and by the next process from disk", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink"] }
      const records = numbered(100)
      const id = yield* session(options, (log) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* appendTexts(log, records), Array.from(records.keys()))
          assert.deepStrictEqual(texts(yield* readAll(log, "sink")), records)
          assert.isBelow(log.stats().fsyncs, 50, "a group commit takes many records")
          return log.id
        })
      )
      yield* session(options, (log) =>
        Effect.gen(function* () {
          assert.strictEqual(log.id, id)
          assert.strictEqual(log.nextOffset(), 100)
          assert.deepStrictEqual(texts(yield* readAll(log, "sink")), records)
          assert.deepStrictEqual(yield* appendTexts(log, ["next"]), [100])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("copies records: the caller's buffer may be used again at once", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink"] }
      yield* session(options, (log) =>
        Effect.gen(function* () {
          const buffer = bytes("before")
          const appended = yield* Effect.forkChild(log.appendEffect(buffer), { startImmediately: true })
          buffer.fill(0)
          yield* Fiber.join(appended)
          assert.deepStrictEqual(texts(yield* readAll(log, "sink")), ["before"])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("writes at once after a pause, and keeps commits apart where it is told to", () =>
    Effect.gen(function* () {
      const own = { directory: yield* temporaryDirectory, consumers: [], commitEveryMillis: 1000 }
      const other = { directory: yield* temporaryDirectory, consumers: [] }
      const log = yield* DurableLog.open(own)
      const promptLog = yield* DurableLog.open(other)
      const fork = (text: string) =>
        Effect.forkChild(log.appendEffect(bytes(text)), { startImmediately: true })
      yield* log.appendEffect(bytes("first"))
      const second = yield* fork("second")
      // Enough for the second to be on disk, if it did not wait.
      for (const text of numbered(5)) yield* promptLog.appendEffect(bytes(text))
      const third = yield* fork("third")
      assert.strictEqual(log.durableOffset(), 1)
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([yield* Fiber.join(second), yield* Fiber.join(third)], [1, 2])
      assert.strictEqual(log.stats().fsyncs, 2)
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* log.appendEffect(bytes("after a pause")), 3)
    }).pipe(Effect.scoped)
  )

  it.live("acknowledges a group of records once, with contiguous offsets", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink"] }
      yield* session(options, (log) =>
        Effect.gen(function* () {
          let calls = 0
          yield* Effect.callback<void>((resume) => {
            log.append(bytes("a"), () => undefined)
            const first = log.appendAll([bytes("b"), bytes("c"), bytes("d")], (error) => {
              calls++
              assert.isUndefined(error)
              assert.strictEqual(log.durableOffset(), 4)
              resume(Effect.void)
            })
            assert.strictEqual(first, 1)
            assert.strictEqual(log.nextOffset(), 4)
          })
          assert.strictEqual(calls, 1)
          assert.deepStrictEqual(texts(yield* readAll(log, "sink")), ["a", "b", "c", "d"])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("acknowledges an empty group, which leaves no trace", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink"] }
      const appendNothing = (log: DurableLog.DurableLog) =>
        Effect.callback<number>((resume) => {
          const offset = log.appendAll([], () => resume(Effect.succeed(Number(offset))))
        })
      yield* session(options, (log) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* appendNothing(log), 0)
          yield* appendTexts(log, ["a"])
          assert.strictEqual(yield* appendNothing(log), 1)
        })
      )
      yield* session(options, (log) =>
        Effect.map(readAll(log, "sink"), (found) => assert.deepStrictEqual(texts(found), ["a"]))
      )
    }).pipe(Effect.scoped)
  )

  it.live("reads the same from disk as from memory, whatever the limits, over many segments", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const options = { directory, consumers: ["sink"], segmentBytes: 60_000 }
      const random = new SeededRandom(7)
      const records = Array.from({ length: 3000 }, (_, index) => `${index}`.padEnd(random.below(200), "x"))
      const sample = (log: DurableLog.DurableLog) =>
        Effect.forEach(Array.from({ length: 60 }), (_, index) => {
          const at = new SeededRandom(index)
          const limits = { from: at.below(3001), maxRecords: 1 + at.below(700), maxBytes: at.below(50_000) }
          return Effect.map(log.consumer("sink").read(limits), (found) => ({ limits, found }))
        })
      const fromMemory = yield* session(options, (log) =>
        Effect.gen(function* () {
          for (let i = 0; i < records.length; i += 50) yield* appendTexts(log, records.slice(i, i + 50))
          assert.isAbove(log.stats().segments, 4)
          return yield* sample(log)
        })
      )
      const fromDisk = yield* session(options, sample)
      assert.deepStrictEqual(
        fromDisk.map(({ found }) => texts(found)),
        fromMemory.map(({ found }) => texts(found))
      )
      for (const { limits, found } of fromDisk) {
        assert.deepStrictEqual(texts(found), records.slice(limits.from, limits.from + found.length))
        const size = found.reduce((sum, record) => sum + record.payload.length, 0)
        assert.isTrue(found.length <= 1 || size <= limits.maxBytes)
        assert.isTrue(limits.from === 3000 || found.length > 0, "one record always comes")
      }
    }).pipe(Effect.scoped)
  )

  it.live("cuts the torn end at whatever byte a crash left it, and keeps every whole frame", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const options = { directory, consumers: ["sink"] }
      const ends: Array<number> = []
      yield* session(options, (log) =>
        Effect.gen(function* () {
          for (const record of ["first", "second", "third"]) {
            yield* appendTexts(log, [record])
            ends.push(log.stats().bytes)
          }
        })
      )
      const file = join(directory, segmentsIn(directory)[0] ?? "")
      const whole = fs.readFileSync(file)
      for (let cut = 0; cut <= whole.length; cut++) {
        // Every other time the disk has garbage where the rest should be.
        fs.writeFileSync(
          file,
          Buffer.concat([whole.subarray(0, cut), Buffer.alloc(cut % 2 === 0 ? 0 : 50, 0xa5)])
        )
        const kept = ends.filter((end) => end <= cut).length
        yield* session(options, (log) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(
              texts(yield* readAll(log, "sink")),
              ["first", "second", "third"].slice(0, kept)
            )
            assert.deepStrictEqual(yield* appendTexts(log, ["after"]), [kept])
          })
        )
        yield* session(options, (log) =>
          Effect.map(readAll(log, "sink"), (found) =>
            assert.strictEqual(texts(found).at(-1), "after", `cut ${cut}`)
          )
        )
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses to open over damage that no crash can cause, naming file and byte", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const options = { directory, consumers: ["sink"], segmentBytes: 100 }
      yield* session(options, (log) =>
        Effect.forEach(numbered(6, 60), (record) => appendTexts(log, [record]), { discard: true })
      )
      const [file = ""] = segmentsIn(directory)
      const path = join(directory, file)
      const whole = fs.readFileSync(path)
      for (const at of [0, 5, 40, whole.length - 1]) {
        const damaged = Buffer.from(whole)
        damaged[at] = (damaged[at] ?? 0) ^ 1
        fs.writeFileSync(path, damaged)
        const refusal = yield* Effect.flip(Effect.scoped(DurableLog.open(options)))
        assert.instanceOf(refusal, DurableLog.LogCorrupt)
        assert.deepInclude(refusal, { file: path, position: 0 })
        assert.deepStrictEqual(fs.readFileSync(path), damaged, "nothing is touched")
      }
      fs.writeFileSync(path, whole)
      yield* session(options, (log) => Effect.map(readAll(log, "sink"), (found) => assert.lengthOf(found, 6)))
      fs.unlinkSync(join(directory, segmentsIn(directory)[1] ?? ""))
      assert.instanceOf(yield* Effect.flip(Effect.scoped(DurableLog.open(options))), DurableLog.LogCorrupt)
    }).pipe(Effect.scoped)
  )

  it.live("refuses to open without its id, or when a consumer is ahead of it", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const options = { directory, consumers: ["sink"] }
      yield* session(options, (log) =>
        Effect.gen(function* () {
          yield* appendTexts(log, ["a", "b"])
          yield* log.consumer("sink").begin(2)
        })
      )
      const id = fs.readFileSync(join(directory, "log-id"))
      fs.unlinkSync(join(directory, "log-id"))
      assert.instanceOf(yield* Effect.flip(Effect.scoped(DurableLog.open(options))), DurableLog.LogCorrupt)
      fs.writeFileSync(join(directory, "log-id"), id)
      fs.truncateSync(join(directory, segmentsIn(directory)[0] ?? ""), 0)
      const refusal = yield* Effect.flip(Effect.scoped(DurableLog.open(options)))
      assert.include(String(refusal), "up to 2, and the log ends at 0")
    }).pipe(Effect.scoped)
  )

  it.live("writes what was appended before its scope closes, and refuses afterwards", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink"] }
      const scope = yield* Scope.make()
      const log = yield* DurableLog.open(options).pipe(Scope.provide(scope))
      const outcomes: Array<unknown> = []
      for (const record of numbered(10)) log.append(bytes(record), (error) => outcomes.push(error))
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(
        outcomes,
        Array.from({ length: 10 }, () => undefined)
      )
      const refusal = log.append(bytes("late"), () => outcomes.push("late"))
      assert.instanceOf(refusal, DurableLog.LogUnavailable)
      assert.include(refusal, { reason: "closed" })
      yield* log.consumer("sink").await(1000)
      const read = log.consumer("sink").read({ from: 0, maxRecords: 1, maxBytes: 1 })
      assert.strictEqual((yield* Effect.flip(read)).reason, "closed")
      assert.lengthOf(outcomes, 10)
    }).pipe(Effect.scoped)
  )
})

describe("the byte cap", () => {
  it.live("refuses with LogFull and a time to wait, until the slowest consumer has committed", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const options = { directory, consumers: ["fast", "slow"], capBytes: 20_000, fullRetryAfterSeconds: 9 }
      yield* session(options, (log) =>
        Effect.gen(function* () {
          const fill = Effect.forever(log.appendEffect(new Uint8Array(500)))
          const full = yield* Effect.flip(fill)
          assert.instanceOf(full, DurableLog.LogFull)
          assert.include(full, { retryAfterSeconds: 9 })
          assert.isAtMost(log.stats().bytes, 20_000)
          yield* log.consumer("fast").commit(log.durableOffset())
          assert.instanceOf(yield* Effect.flip(log.appendEffect(new Uint8Array(500))), DurableLog.LogFull)
          yield* log.consumer("slow").commit(log.durableOffset() - 1)
          yield* log.appendEffect(new Uint8Array(500))
          assert.isBelow(log.stats().bytes, 10_000)
          assert.isAbove(log.stats().firstOffset, 0)
          assert.isAtMost(log.stats().firstOffset, log.consumer("slow").committed())
        })
      )
      yield* session(options, (log) =>
        Effect.map(readAll(log, "slow"), (found) =>
          assert.strictEqual(found.at(-1)?.offset, log.nextOffset() - 1)
        )
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "takes a record of the largest size, throws over it, and refuses a second while the disk has the first",
    () =>
      Effect.gen(function* () {
        const options = { directory: yield* temporaryDirectory, consumers: ["sink"], maxBatchBytes: 1000 }
        yield* session(options, (log) =>
          Effect.gen(function* () {
            const largest = new Uint8Array(1000 - 36 - 4)
            const first = yield* Effect.forkChild(log.appendEffect(largest), { startImmediately: true })
            assert.instanceOf(
              log.append(new Uint8Array(1), () => undefined),
              DurableLog.LogFull
            )
            assert.throws(() => log.append(new Uint8Array(largest.length + 1), () => undefined), RangeError)
            assert.strictEqual(yield* Fiber.join(first), 0)
            assert.strictEqual(yield* log.appendEffect(new Uint8Array(1)), 1)
          })
        )
      }).pipe(Effect.scoped)
  )
})

describe("a consumer", () => {
  it.live("goes on where it committed, and says what a crash left uncertain", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink", "other"] }
      yield* session(options, (log) =>
        Effect.gen(function* () {
          yield* appendTexts(log, numbered(10))
          const consumer = log.consumer("sink")
          yield* consumer.begin(4)
          yield* consumer.commit(4)
          yield* consumer.begin(7)
        })
      )
      yield* session(options, (log) =>
        Effect.sync(() => {
          assert.strictEqual(log.consumer("sink").committed(), 4)
          assert.strictEqual(log.consumer("sink").inFlightTo(), 7)
          assert.strictEqual(log.consumer("other").committed(), 0)
          assert.throws(() => log.consumer("undeclared"))
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("without a readable checkpoint begins at the oldest record, with everything uncertain", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const options = { directory, consumers: ["sink"] }
      const path = join(directory, "sink.checkpoint")
      yield* session(options, (log) =>
        Effect.gen(function* () {
          yield* appendTexts(log, numbered(10))
          yield* log.consumer("sink").commit(8)
        })
      )
      const whole = fs.readFileSync(path)
      for (let length = 0; length <= whole.length; length += 16) {
        fs.writeFileSync(path, whole.subarray(0, length))
        yield* session(options, (log) =>
          Effect.sync(() => {
            const consumer = log.consumer("sink")
            const place = [consumer.committed(), consumer.inFlightTo()]
            assert.deepStrictEqual(place, length === whole.length ? [8, 8] : [0, 10])
          })
        )
      }
    }).pipe(Effect.scoped)
  )

  it.live("waits for records by count, or by bytes", () =>
    Effect.gen(function* () {
      const options = { directory: yield* temporaryDirectory, consumers: ["sink"] }
      yield* session(options, (log) =>
        Effect.gen(function* () {
          const consumer = log.consumer("sink")
          const woken: Array<string> = []
          const waiter = (name: string, wait: Effect.Effect<void>) =>
            Effect.forkChild(
              Effect.andThen(
                wait,
                Effect.sync(() => woken.push(name))
              ),
              { startImmediately: true }
            )
          const one = yield* waiter("one", consumer.await(0))
          const three = yield* waiter("three", consumer.awaitMore({ from: 0, records: 3, bytes: Infinity }))
          const twenty = yield* waiter("bytes", consumer.awaitMore({ from: 0, records: 100, bytes: 20 }))
          yield* log.appendEffect(bytes("0123456789"))
          yield* Fiber.join(one)
          assert.deepStrictEqual(woken, ["one"])
          yield* log.appendEffect(bytes("0123456789"))
          yield* log.appendEffect(bytes(""))
          yield* Fiber.join(twenty)
          yield* Fiber.join(three)
          assert.deepStrictEqual([...woken].sort(), ["bytes", "one", "three"])
          // Records already there count.
          yield* consumer.awaitMore({ from: 0, records: 100, bytes: 20 })
          yield* consumer.awaitMore({ from: 1, records: 2, bytes: Infinity })
        })
      )
    }).pipe(Effect.scoped)
  )
})
