import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Random, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Batcher from "#streams/kernel/Batcher.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { FileFailed } from "#streams/kernel/LogFailure.ts"
import { LogFiles } from "#streams/kernel/LogFiles.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { SimulatedDisk, noFaults, type Faults } from "./SimulatedDisk.ts"
import { isPoison, SinkModel } from "./SinkModel.ts"

/** The clients' acknowledgements, against the contents of the log and the sink. */
class Model {
  /** offset -> record: acknowledged, or found after a restart, and never to change again */
  readonly kept = new Map<number, string>()
  /** every record ever handed to the log */
  readonly offered = new Set<string>()
  /** appended with write-through, and not failed since: a killed process leaves each of them behind */
  readonly handed = new Set<string>()
  /** refused by an acknowledgement, and no record acknowledged since */
  readonly refused = new Set<string>()
  /** not in the log when a process opened it, or refused before another was acknowledged: never to be seen again */
  readonly gone = new Set<string>()
  /** violations of the log's promises, in words: an acknowledgement that throws would take the log's side down with it */
  readonly violations: Array<string> = []
  acknowledged = 0
  failed = 0
  private count = 0
  /** how many of the records the sink takes in no company */
  readonly poisonChance: number

  constructor(poisonChance = 0) {
    this.poisonChance = poisonChance
  }

  offer(random: SeededRandom, poisonChance = this.poisonChance): string {
    const poison = random.chance(poisonChance) ? (random.chance(0.5) ? "!" : "?") : ""
    const record = `${this.count++}:${poison}`.padEnd(random.below(random.chance(0.05) ? 900 : 90), "x")
    this.offered.add(record)
    return record
  }

  refuse(record: string): void {
    this.handed.delete(record)
    this.refused.add(record)
  }

  acknowledge(offset: number, record: string): void {
    this.acknowledged++
    for (const refused of this.refused) this.gone.add(refused)
    this.refused.clear()
    const before = this.kept.get(offset)
    assert.isTrue(
      before === undefined || before === record,
      `offset ${offset} was acknowledged for two records`
    )
    this.kept.set(offset, record)
  }
}

const bytesOf = (record: string): Uint8Array => Buffer.from(record, "latin1")
const textOf = (payload: Uint8Array): string => Buffer.from(payload).toString("latin1")

const append = (
  log: DurableLog.DurableLog,
  model: Model,
  random: SeededRandom,
  isOver: () => boolean
): void => {
  const records = Array.from({ length: random.chance(0.7) ? 1 : 1 + random.below(4) }, () =>
    model.offer(random)
  )
  let called = 0
  const done = (error: DurableLog.LogUnavailable | undefined): void => {
    if (++called > 1) model.violations.push("an acknowledgement was called twice")
    if (error?.cause instanceof FileFailed && error.cause.code === "DEFECT")
      model.violations.push(String(error.cause.cause))
    if (error !== undefined) for (const record of records) model.refuse(record)
    if (error !== undefined) model.failed++
    else if (typeof first !== "number") model.violations.push("a refused record was acknowledged")
    else records.forEach((record, index) => model.acknowledge(first + index, record))
  }
  const first =
    records.length === 1
      ? log.append(bytesOf(records[0] ?? ""), done)
      : log.appendAll(records.map(bytesOf), done)
  // No client has heard of records handed over in the instant of the crash.
  if (typeof first === "number" && !isOver()) for (const record of records) model.handed.add(record)
}

/** Reads the whole log as a new process finds it. */
const verify = Effect.fnUntraced(function* (
  log: DurableLog.DurableLog,
  model: Model,
  random: SeededRandom,
  isWriteThrough = false
) {
  const consumer = log.consumer("sink")
  const first = log.stats().firstOffset
  assert.isAtMost(first, consumer.committed(), "records that the sink has not got were removed")
  const seen = new Set(Array.from(model.kept, ([offset, record]) => (offset < first ? record : "")))
  let offset = first
  while (offset < log.durableOffset()) {
    const records = yield* consumer.read({
      from: offset,
      maxRecords: 1 + random.below(20),
      maxBytes: random.below(2000)
    })
    assert.isNotEmpty(records)
    for (const record of records) {
      const text = textOf(record.payload)
      assert.strictEqual(record.offset, offset, "a gap")
      assert.isTrue(model.offered.has(text), `a record that nobody appended: ${text}`)
      assert.isFalse(seen.has(text), `a record came twice: ${text}`)
      assert.isFalse(model.gone.has(text), `a record came back: ${text}`)
      assert.strictEqual(text, model.kept.get(offset) ?? text, "an acknowledged record has changed")
      model.kept.set(offset, text)
      seen.add(text)
      offset++
    }
  }
  for (const kept of model.kept.keys()) assert.isBelow(kept, offset, "an acknowledged record is gone")
  const present = new Set(model.kept.values())
  for (const record of model.offered) if (!present.has(record)) model.gone.add(record)
  model.refused.clear()
  if (!isWriteThrough) return
  for (const record of model.handed) assert.isTrue(present.has(record), `the killed process lost ${record}`)
  model.handed.clear()
})

const options: DurableLog.LogOptions = {
  directory: "log",
  consumers: ["sink"],
  segmentBytes: 700,
  capBytes: 6000,
  maxBatchBytes: 4500,
  tailBytes: 900
}

/** Opens however often it takes; only what a retry can cure may stand in the way. */
const openLog = Effect.fnUntraced(function* (writeThrough: boolean) {
  for (;;) {
    const opened = yield* Effect.result(DurableLog.open({ ...options, writeThrough }))
    if (Result.isSuccess(opened)) return opened.success
    if (opened.failure._tag !== "LogUnavailable") return yield* opened.failure
  }
})

const startBatcher = (log: DurableLog.DurableLog, sink: SinkModel, random: SeededRandom) =>
  Batcher.run({
    name: "test",
    log,
    consumer: log.consumer("sink"),
    sink: sink.connect(),
    policy: {
      maxRecords: 1 + random.below(12),
      maxBytes: 50 + random.below(600),
      maxAgeMillis: random.below(50)
    },
    backoff: { baseMillis: 1, maxMillis: 20 },
    writeTimeoutMillis: 15
  })

const faultsFrom = (random: SeededRandom): Faults => {
  const rate = (most: number): number => (random.chance(0.5) ? 0 : random.next() * most)
  return {
    shortWrite: rate(0.3),
    writeError: rate(0.05),
    syncError: rate(0.1),
    readError: rate(0.05),
    directoryError: rate(0.05),
    becomesFull: rate(0.05),
    becomesFree: 0.1
  }
}

const drive = Effect.fnUntraced(function* (
  log: DurableLog.DurableLog,
  model: Model,
  random: SeededRandom,
  isOver: () => boolean
) {
  const steps = random.below(random.chance(0.3) ? 3 : 25)
  for (let step = 0; step < steps; step++) {
    const burst = 1 + random.below(4)
    for (let i = 0; i < burst; i++) append(log, model, random, isOver)
    const turns = random.below(12)
    for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
    // A crashed process does nothing more, and no result is awaited.
    if (isOver()) return yield* Effect.never
    if (random.chance(0.5)) yield* TestClock.adjust(random.below(60))
  }
})

/** One life of the server: it opens, checks, works, and ends by a crash or in order. */
const live = Effect.fnUntraced(function* (
  disk: SimulatedDisk,
  model: Model,
  sink: SinkModel,
  random: SeededRandom,
  isWriteThrough: boolean
) {
  sink.faultChance = random.chance(0.5) ? 0.4 : 0
  // Beyond the batcher's patience at times.
  sink.maxMillis = 20
  disk.faults = faultsFrom(random)
  const scope = yield* Scope.make()
  const ended = yield* Deferred.make<"crashed" | "in order", unknown>()
  const life = { isOver: false }
  if (random.chance(0.8)) {
    // Often early: between opening and the first fdatasync the log rests on what an earlier process left.
    disk.crashAfter(1 + random.below(random.chance(0.4) ? 30 : 250), () => {
      life.isOver = true
      Deferred.doneUnsafe(ended, Exit.succeed("crashed"))
    })
  }
  const work = Effect.gen(function* () {
    const log = yield* openLog(isWriteThrough)
    yield* verify(log, model, random, isWriteThrough).pipe(
      Effect.retry({ while: (error) => error._tag === "LogUnavailable" })
    )
    yield* startBatcher(log, sink, random)
    yield* drive(log, model, random, () => life.isOver)
    return "in order" as const
  }).pipe(Scope.provide(scope), Effect.provideService(LogFiles, disk.mount()))
  // Detached: a crash ends it without a chance to clean up.
  yield* Effect.forkDetach(Deferred.into(work, ended))
  const end = yield* Deferred.await(ended)
  if (end === "in order" && random.chance(0.5)) {
    const closed = yield* Deferred.make<void>()
    yield* Effect.forkDetach(Deferred.into(Scope.close(scope, Exit.void), closed))
    while (!Deferred.isDoneUnsafe(closed) && !life.isOver) yield* TestClock.adjust(100)
  }
  life.isOver = true
  assert.deepStrictEqual(model.violations, [])
  if (end === "crashed") totals.crashes++
  if (random.chance(0.5)) disk.restartProcess()
  else {
    disk.restartMachine()
    model.handed.clear()
  }
  if (random.chance(0.05)) disk.damage("log/sink.checkpoint")
})

const appendGood = (log: DurableLog.DurableLog, model: Model, random: SeededRandom) => {
  const record = model.offer(random, 0)
  return log.appendEffect(bytesOf(record)).pipe(
    Effect.tapError(() => TestClock.adjust(20)),
    Effect.retry({ while: (error) => error._tag === "LogFull" }),
    Effect.tap((offset) => Effect.sync(() => model.acknowledge(offset, record)))
  )
}

/** A last life without faults, in which everything must arrive. */
const settle = Effect.fnUntraced(function* (
  disk: SimulatedDisk,
  model: Model,
  sink: SinkModel,
  random: SeededRandom,
  isWriteThrough: boolean
) {
  sink.faultChance = 0
  sink.maxMillis = 0
  disk.faults = noFaults
  const log = yield* openLog(isWriteThrough)
  yield* verify(log, model, random, isWriteThrough)
  const batcher = yield* startBatcher(log, sink, random)
  // Beside a good record the worst run of bad ones is judged.
  yield* appendGood(log, model, random)
  const end = log.durableOffset()
  // A bad record may be judged before the good one is there: then a reader hears so, and comes again.
  const flushed = Effect.retry(
    Effect.tapError(batcher.flushTo(end), () => Effect.yieldNow),
    { times: 10_000 }
  )
  yield* Effect.raceFirst(flushed, Effect.forever(TestClock.adjust(20)))
  assert.deepStrictEqual([...model.violations, ...sink.violations], [])
  // A sink that has taken nothing yet is believed in few refusals: a good record lets the others go.
  const quarantined = log.consumer("sink").quarantine.list()
  totals.setAside += quarantined.length
  for (const { offset } of quarantined) {
    assert.isTrue(isPoison(model.kept.get(offset) ?? ""), `record ${offset} was set aside for nothing`)
    assert.isFalse(sink.rows.has(offset), `record ${offset} is in the sink and set aside`)
  }
  assert.strictEqual(
    sink.rows.size + quarantined.length,
    end,
    "every record must be in the sink or set aside"
  )
  for (const [offset, row] of sink.rows) assert.strictEqual(row, model.kept.get(offset), `row ${offset}`)
})

const noTotals = { offered: 0, acknowledged: 0, failed: 0, crashes: 0, rows: 0, setAside: 0 }

let totals = { ...noTotals }

const simulate =
  (isWriteThrough: boolean, poisonChance = 0) =>
  (random: SeededRandom, seed: number): Effect.Effect<void, unknown> =>
    Effect.gen(function* () {
      const disk = new SimulatedDisk(random)
      const model = new Model(poisonChance)
      const sink = new SinkModel(random)
      const lives = 1 + random.below(5)
      for (let life = 0; life < lives; life++) yield* live(disk, model, sink, random, isWriteThrough)
      const last = Effect.scoped(settle(disk, model, sink, random, isWriteThrough))
      yield* Effect.provideService(last, LogFiles, disk.mount())
      totals.offered += model.offered.size
      totals.acknowledged += model.acknowledged
      totals.failed += model.failed
      totals.rows += sink.rows.size
    }).pipe(
      Random.withSeed(seed),
      // A clock of its own: sleepers of crashed processes must not go on in the next seed.
      Effect.provide(TestClock.layer())
    )

/** A simulation in which hardly anything succeeds, fails or crashes proves nothing. */
const provesSomething = Effect.sync(() => {
  const said = JSON.stringify(totals)
  assert.isAbove(totals.acknowledged, totals.offered / 4, said)
  assert.isAbove(totals.rows, totals.acknowledged / 2, said)
  assert.isAbove(totals.failed, totals.offered / 100, said)
  assert.isAbove(totals.crashes, 0, said)
  totals = { ...noTotals }
})

/** The simulations of the log, each for so many thousandths of its seeds. */
export const describeLog = (share: number): void => {
  const some = (seeds: number): number => Math.ceil((seeds * share) / 1_000)

  it.effect(
    "keeps every acknowledged record once and in order, and brings each into the sink exactly once",
    () => Effect.andThen(forSeeds(some(1000), simulate(false)), provesSomething),
    // Minutes when SIMULATION_RUNS asks for thousands.
    600_000
  )

  it.effect(
    "with write-through keeps, besides, every record that a killed process had appended, acknowledged or not",
    () => Effect.andThen(forSeeds(some(1000), simulate(true)), provesSomething),
    600_000
  )

  it.effect(
    "sets aside what the sink takes in no company, and nothing else, and brings in the rest exactly once",
    () =>
      Effect.andThen(
        forSeeds(some(600), simulate(false, 0.1)),
        Effect.sync(() => {
          assert.isAbove(totals.setAside, totals.acknowledged / 100, JSON.stringify(totals))
          totals = { ...noTotals }
        })
      ),
    600_000
  )

  it.effect("removes what has been read so that no power cut leaves a gap", () =>
    forSeeds(some(300), (random) =>
      Effect.gen(function* () {
        const disk = new SimulatedDisk(random)
        const model = new Model()
        const scope = yield* Scope.make()
        yield* Effect.gen(function* () {
          const log = yield* DurableLog.open({ ...options, segmentBytes: 150 })
          for (let i = 0; i < 12; i++) {
            const record = model.offer(random)
            model.acknowledge(yield* log.appendEffect(bytesOf(record)), record)
          }
          const crashed = yield* Deferred.make<void>()
          disk.crashAfter(1 + random.below(20), () => Deferred.doneUnsafe(crashed, Exit.void))
          const committing = log.consumer("sink").commit(12)
          yield* Effect.forkDetach(Deferred.into(Effect.asVoid(Effect.result(committing)), crashed))
          yield* Deferred.await(crashed)
        }).pipe(Scope.provide(scope), Effect.provideService(LogFiles, disk.mount()))
        disk.restartMachine()
        yield* Effect.scoped(Effect.flatMap(openLog(false), (log) => verify(log, model, random))).pipe(
          Effect.provideService(LogFiles, disk.mount())
        )
      })
    )
  )
}
