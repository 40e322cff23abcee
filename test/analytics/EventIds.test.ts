import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as fs from "node:fs"
import { join } from "node:path"
import * as EventIds from "#src/analytics/ingest/EventIds.ts"
import { eventLogConsumers } from "#src/analytics/ingest/EventLog.ts"
import {
  hashOfId,
  IdIndex,
  IdTable,
  slotsMin,
  idMemoryMillis,
  SiteIds
} from "#src/analytics/ingest/IdIndex.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { storedEvent } from "./Events.ts"
import { noon } from "./Senders.ts"

const openLog = (root: string) =>
  DurableLog.open({ directory: join(root, "log"), consumers: Object.values(eventLogConsumers) })

const openIds = (log: DurableLog.DurableLog, root: string) =>
  EventIds.make(log, { directory: join(root, "ids"), idsMax: 10_000, openSitesMax: 4 })

type Ids = EventIds.EventIds["Service"]

const site = storedEvent().site

/** Stores an event with an id as ingest does, and returns once it is on disk. */
const accept = (log: DurableLog.DurableLog, ids: Ids, id: string, received = noon, of = site) =>
  Effect.callback<void, DurableLog.LogUnavailable>((resume) => {
    const hash = hashOfId(id)
    const claim = ids.begin(of, [hash], received)
    const record = EventRecord.encode(storedEvent({ received, ts: received, site: of }), hash)
    const offset = log.append(record, (failure) => {
      claim.settle(failure === undefined)
      resume(failure === undefined ? Effect.void : Effect.fail(failure))
    })
    if (typeof offset === "number") claim.at(offset)
  })

const seen = (ids: Ids, id: string, now = noon, of = site) => ids.look(of, hashOfId(id), now)

describe("a table of ids", () => {
  it.effect("knows what was put, and nothing else, also when it is opened again", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      let files = 0
      // Few different low bits, so that buckets overflow into their neighbours.
      const anyHash = fc
        .tuple(fc.bigInt({ min: 0n, max: 5n }), fc.bigInt({ min: 1n, max: 2n ** 32n - 1n }))
        .map(([low, high]) => (high << 32n) | low)
      fc.assert(
        fc.property(
          fc.array(fc.tuple(anyHash, fc.nat()), { maxLength: 200 }),
          fc.array(anyHash),
          (puts, others) => {
            const path = join(directory, `${files++}.ids`)
            const table = IdTable.create(path, slotsMin)
            const model = new Map<bigint, number>()
            for (const [hash, millis] of puts) {
              table.put(hash, millis)
              model.set(hash, millis)
            }
            table.close()
            const opened = IdTable.open(path)
            assert.strictEqual(opened?.count, model.size)
            for (const [hash, millis] of model) assert.strictEqual(opened?.find(hash), millis)
            for (const hash of others) assert.strictEqual(opened?.find(hash), model.get(hash))
            opened?.close()
            fs.rmSync(path)
          }
        ),
        { numRuns: 50 }
      )
    })
  )

  it.effect("is passed over when its making was cut short", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      fs.writeFileSync(join(directory, "00000001.ids"), "")
      const ids = new SiteIds(directory, 10_000)
      assert.isFalse(ids.has(1n, noon))
      ids.put(1n, noon)
      assert.isTrue(ids.has(1n, noon))
      ids.close()
    })
  )
})

describe("the ids of a site", () => {
  it.effect("are known for 24 hours and no longer", () =>
    Effect.gen(function* () {
      const ids = new SiteIds(yield* temporaryDirectory, 10_000)
      ids.put(1n, noon)
      assert.isTrue(ids.has(1n, noon + idMemoryMillis))
      assert.isFalse(ids.has(1n, noon + idMemoryMillis + 1))
      ids.put(1n, noon + idMemoryMillis + 1)
      assert.isTrue(ids.has(1n, noon + 2 * idMemoryMillis))
      ids.close()
    })
  )

  it.effect("are at most so many: the oldest are forgotten first, the newest seven eighths stay", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const idsMax = 8192
      const ids = new SiteIds(directory, idsMax)
      const hash = (n: number): bigint => hashOfId(`event-${n}`)
      for (let n = 0; n < 30_000; n++) {
        ids.put(hash(n), noon + n)
        if (n % 1000 === 0) assert.isAtMost(ids.count, idsMax)
      }
      assert.isAtLeast(ids.count, (idsMax * 7) / 8 - 1)
      for (let n = 30_000 - (idsMax * 3) / 4; n < 30_000; n += 7)
        assert.isTrue(ids.has(hash(n), noon + 30_000))
      assert.isFalse(ids.has(hash(0), noon + 30_000))
      ids.close()
      const again = new SiteIds(directory, idsMax)
      assert.isTrue(again.has(hash(29_999), noon + 30_000))
      again.close()
    })
  )

  it.effect("leave no files behind when the site falls silent", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const index = new IdIndex(directory, { idsMax: 10_000, openSitesMax: 2 })
      index.put("st_1", 1n, noon)
      const written = Date.now()
      index.sweep(written + idMemoryMillis - 60_000)
      assert.deepStrictEqual(fs.readdirSync(directory), ["st_1"])
      index.sweep(written + idMemoryMillis + 60_000)
      assert.deepStrictEqual(fs.readdirSync(directory), [])
      index.close()
    })
  )

  it.effect("of more sites than may be open are all known", () =>
    Effect.gen(function* () {
      const index = new IdIndex(yield* temporaryDirectory, { idsMax: 10_000, openSitesMax: 2 })
      for (let n = 1; n <= 10; n++) index.put(`st_${n}`, BigInt(n), noon)
      for (let n = 1; n <= 10; n++) {
        assert.isTrue(index.has(`st_${n}`, BigInt(n), noon))
        assert.isFalse(index.has(`st_${n}`, BigInt(n + 1), noon))
      }
      index.close()
    })
  )

  it.effect("that the disk refuses are known all the same, and written once it takes them", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const index = new IdIndex(directory, { idsMax: 10_000, openSitesMax: 2 })
      fs.writeFileSync(join(directory, "st_1"), "in the way of the site's directory")
      index.put("st_1", 1n, noon)
      assert.isTrue(index.has("st_1", 1n, noon))
      assert.isTrue(yield* Effect.isFailure(Effect.tryPromise(() => index.sync())))
      fs.rmSync(join(directory, "st_1"))
      yield* Effect.promise(() => index.sync())
      index.close()
      const again = new IdIndex(directory, { idsMax: 10_000, openSitesMax: 2 })
      assert.isTrue(again.has("st_1", 1n, noon))
      again.close()
    })
  )
})

describe("the index of event ids", () => {
  const started = Effect.gen(function* () {
    yield* TestClock.setTime(noon)
    const root = yield* temporaryDirectory
    const log = yield* openLog(root)
    return { root, log, ids: yield* openIds(log, root) }
  })

  it.effect("counts an id from the moment its event goes to the log, and forgets it if the log fails", () =>
    Effect.gen(function* () {
      const { ids } = yield* started
      const claim = ids.begin(site, [hashOfId("a")], noon)
      const pending = seen(ids, "a")
      assert.isObject(pending)
      const outcomes: Array<boolean> = []
      if (typeof pending !== "string") pending.whenSettled((isStored) => outcomes.push(isStored))
      claim.settle(false)
      assert.deepStrictEqual(outcomes, [false])
      assert.strictEqual(seen(ids, "a"), "new")
      const second = ids.begin(site, [hashOfId("a")], noon)
      second.settle(true)
      assert.strictEqual(seen(ids, "a"), "stored")
      assert.strictEqual(seen(ids, "a", noon, "st_other"), "new")
    })
  )

  it.effect("is rebuilt from the log after a crash, whatever of it had reached the disk", () =>
    Effect.gen(function* () {
      const { ids, log, root } = yield* started
      for (let n = 0; n < 50; n++) yield* accept(log, ids, `before-${n}`)
      yield* TestClock.adjust(6_000)
      const consumer = log.consumer(eventLogConsumers.ids)
      // The checkpoint is real I/O behind a test clock: wait for it, not for time.
      while (consumer.committed() < 50) yield* Effect.promise(() => new Promise(setImmediate))
      for (let n = 0; n < 50; n++) yield* accept(log, ids, `after-${n}`)
      for (const lost of ["nothing", "files", "checkpoint"]) {
        const copy = join(yield* temporaryDirectory, "copy")
        fs.cpSync(root, copy, { recursive: true, filter: (path) => !path.endsWith("/lock") })
        if (lost === "checkpoint") {
          fs.rmSync(join(copy, "log", "ids.checkpoint"))
          fs.rmSync(join(copy, "ids"), { recursive: true })
        }
        if (lost === "files") fs.rmSync(join(copy, "ids"), { recursive: true })
        const reopened = yield* openLog(copy)
        const rebuilt = yield* openIds(reopened, copy)
        for (let n = 0; n < 50; n++) assert.strictEqual(seen(rebuilt, `after-${n}`), "stored", `${lost} ${n}`)
        if (lost !== "files") assert.strictEqual(seen(rebuilt, "before-7"), "stored")
        assert.strictEqual(seen(rebuilt, "never"), "new")
      }
    })
  )

  it.effect("lets the log forget only what is on disk: a claim that is not settled holds it", () =>
    Effect.gen(function* () {
      const { ids, log } = yield* started
      yield* accept(log, ids, "one")
      const claim = ids.begin(site, [hashOfId("two")], noon)
      const offset = yield* log.appendEffect(EventRecord.encode(storedEvent(), hashOfId("two")))
      claim.at(offset)
      yield* TestClock.adjust(6_000)
      const consumer = log.consumer(eventLogConsumers.ids)
      while (consumer.committed() < offset) yield* Effect.promise(() => new Promise(setImmediate))
      yield* TestClock.adjust(6_000)
      assert.strictEqual(consumer.committed(), offset)
      claim.settle(true)
      yield* TestClock.adjust(6_000)
      while (consumer.committed() < offset + 1) yield* Effect.promise(() => new Promise(setImmediate))
    })
  )

  it.effect("skips records without an id and ids that are over when it is rebuilt", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const root = yield* temporaryDirectory
      const log = yield* openLog(root)
      yield* log.appendEffect(EventRecord.encode(storedEvent()))
      const old = storedEvent({ received: noon - idMemoryMillis - 1 })
      yield* log.appendEffect(EventRecord.encode(old, hashOfId("old")))
      yield* log.appendEffect(EventRecord.encode(storedEvent({ received: noon }), hashOfId("new")))
      const ids = yield* openIds(log, root)
      assert.strictEqual(seen(ids, "old"), "new")
      assert.strictEqual(seen(ids, "new"), "stored")
      assert.strictEqual(log.consumer(eventLogConsumers.ids).committed(), 3)
    })
  )
})
