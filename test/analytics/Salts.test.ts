import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { Salts } from "#src/analytics/ingest/Salts.ts"
import { SaltStore, SaltStoreUnavailable } from "#src/analytics/ingest/SaltStore.ts"
import { dayMillis, dayOf } from "#streams/analytics/EventTime.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const today = Date.UTC(2026, 10, 21)
const noon = today + dayMillis / 2

/** The store that several processes share, with a switch that takes it away. */
class SharedStore {
  readonly salts = new Map<number, Uint8Array>()
  isAway = false

  readonly layer = Layer.succeed(SaltStore, {
    agree: (day, offered) =>
      this.#answer(() => {
        const held = this.salts.get(day) ?? offered
        this.salts.set(day, held)
        return held
      }),
    forgetBefore: (day) =>
      this.#answer(() => {
        for (const held of this.salts.keys()) if (held < day) this.salts.delete(held)
      })
  })

  #answer<A>(answer: () => A): Effect.Effect<A, SaltStoreUnavailable> {
    return Effect.suspend(() =>
      this.isAway ? Effect.fail(new SaltStoreUnavailable({ cause: "away" })) : Effect.sync(answer)
    )
  }
}

/** A process: its salts live as long as the scope. */
const start = (store: SharedStore) =>
  Effect.map(Layer.build(Salts.layer.pipe(Layer.provide(store.layer), Layer.fresh)), (context) =>
    Effect.runSync(Effect.provide(Salts, context))
  )

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex")

describe("the salt of a day", () => {
  it.effect("is one in all processes, and in a process that is started again", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const store = new SharedStore()
      const [one, two] = [yield* start(store), yield* start(store)]
      assert.deepStrictEqual(one.at(noon), two.at(noon))
      assert.deepStrictEqual((yield* start(store)).at(noon), one.at(noon))
    })
  )

  it.effect("is 256 random bits", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const [one, other] = [yield* start(new SharedStore()), yield* start(new SharedStore())]
      assert.match(one.at(noon).text, /^[0-9a-f]{64}$/)
      assert.notStrictEqual(one.at(noon).text, other.at(noon).text)
    })
  )

  it.effect("is agreed on before midnight, so that midnight needs no store", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const store = new SharedStore()
      const [one, two] = [yield* start(store), yield* start(store)]
      store.isAway = true
      yield* TestClock.setTime(today + dayMillis)
      assert.deepStrictEqual(one.at(today + dayMillis), two.at(today + dayMillis))
      assert.notStrictEqual(one.at(today + dayMillis).text, hex(store.salts.get(dayOf(noon))))
      assert.strictEqual(one.at(today + dayMillis).text, hex(store.salts.get(dayOf(noon) + 1)))
    })
  )

  it.effect("is deleted at midnight without a restart and without an event", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const store = new SharedStore()
      yield* start(store)
      assert.deepStrictEqual([...store.salts.keys()], [dayOf(noon), dayOf(noon) + 1])
      yield* TestClock.adjust(dayMillis / 2)
      assert.deepStrictEqual([...store.salts.keys()], [dayOf(noon) + 1, dayOf(noon) + 2])
    })
  )

  it.effect("never goes back when the clock does", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const salts = yield* start(new SharedStore())
      const tomorrow = salts.at(noon + dayMillis)
      assert.deepStrictEqual(salts.at(noon), tomorrow)
      assert.deepStrictEqual(salts.at(0), tomorrow)
    })
  )

  it.effect("is the process's own while the store is away, and stays for the day once used", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(noon)
      const store = new SharedStore()
      const other = yield* start(store)
      store.isAway = true
      const used = yield* start(store)
      const unused = yield* start(store)
      const own = used.at(noon)
      assert.notStrictEqual(own.text, other.at(noon).text)
      store.isAway = false
      yield* TestClock.adjust(10_000)
      assert.deepStrictEqual(used.at(noon), own)
      assert.deepStrictEqual(unused.at(noon), other.at(noon))
      assert.deepStrictEqual(used.at(noon + dayMillis), other.at(noon + dayMillis))
    })
  )

  it.effect("holds its rules under any course of clock and store", () => forSeeds(20, live))
})

const hour = dayMillis / 24

const live = (random: SeededRandom) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(noon)
    const store = new SharedStore()
    const salts = yield* start(store)
    const seen = new Map<number, string>()
    let now = noon
    for (let turn = 0; turn < 12; turn++) {
      store.isAway = random.chance(0.5)
      now += [1_000, hour, 5 * hour, 11 * hour][random.below(4)] ?? 0
      yield* TestClock.setTime(now)
      if (random.chance(0.7)) {
        const { day, text } = salts.at(now)
        assert.strictEqual(day, dayOf(now))
        assert.strictEqual(seen.get(day) ?? text, text, "one salt a day")
        const others = [...seen].filter(([other]) => other !== day).map(([, other]) => other)
        assert.notInclude(others, text, "another salt every day")
        seen.set(day, text)
      }
      if (!store.isAway) {
        now += 61_000
        yield* TestClock.setTime(now)
        assert.isAtLeast(Math.min(...store.salts.keys()), dayOf(now), "no salt of a day that is over")
        assert.isTrue(store.salts.has(dayOf(now) + 1), "tomorrow's is made")
      }
    }
  }).pipe(Effect.scoped, Effect.provide(TestClock.layer()))

layer(TestStores.layer)("in Postgres", (it) => {
  it.effect("the first salt offered for a day holds, and days that are over are deleted", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(SaltStore.layer)
      const store = yield* Effect.provide(SaltStore, context)
      const sql = yield* SqlClient
      const [one, two] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]
      assert.deepStrictEqual(new Uint8Array(yield* store.agree(20_000, one)), one)
      assert.deepStrictEqual(new Uint8Array(yield* store.agree(20_000, two)), one)
      assert.deepStrictEqual(new Uint8Array(yield* store.agree(20_001, two)), two)
      yield* store.forgetBefore(20_001)
      const rows = yield* sql<{ day: string }>`SELECT to_char(day, 'YYYY-MM-DD') AS day FROM salts`
      assert.deepStrictEqual(
        rows.map(({ day }) => day),
        ["2024-10-05"]
      )
    })
  )
})
