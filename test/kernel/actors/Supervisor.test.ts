import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Metric from "effect/Metric"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import type { ActorOptions } from "#actors/kernel/Actor.ts"
import * as Supervisor from "#actors/kernel/Supervisor.ts"

class Negative extends Schema.TaggedError<Negative>()("Negative", {}) {}
class NoSuchCounter extends Schema.TaggedError<NoSuchCounter>()("NoSuchCounter", {}) {}

/** Counters over a store that outlives them, with everything that can go wrong on demand. */
const supervise = (options: ActorOptions = {}) =>
  Effect.gen(function* () {
    const store = new Map<string, number>()
    const lives: Array<string> = []
    /** holds back the handling of "add" */
    const gate = yield* Latch.make(true)
    /** holds back the saving of a closing actor */
    const disk = yield* Latch.make(true)
    const counters = yield* Supervisor.make({
      name: "counter",
      ...options,
      build: (key: string, self) =>
        Effect.gen(function* () {
          if (key.startsWith("missing")) return yield* new NoSuchCounter()
          if (key.startsWith("broken")) return yield* Effect.die(new Error("cannot be built"))
          const state = { value: store.get(key) ?? 0, bump: (): number => ++state.value }
          const ticked = yield* Deferred.make<void>()
          lives.push(`open ${key}`)
          yield* Effect.addFinalizer(() =>
            disk.whenOpen(
              Effect.sync(() => {
                store.set(key, state.value)
                lives.push(`close ${key}`)
              })
            )
          )
          const timer = Effect.andThen(Deferred.await(ticked), Effect.sleep(1))
          yield* self.fork(Effect.andThen(timer, Effect.die(new Error("the timer broke"))))
          return {
            state,
            handlers: {
              add: (n: number) =>
                n < 0 ? Effect.fail(new Negative()) : gate.whenOpen(Effect.sync(() => (state.value += n))),
              get: () => Effect.sync(() => state.value),
              crash: (): Effect.Effect<number> => Effect.die(new Error("boom")),
              interruptItself: () => Effect.interrupt,
              breakTimer: () => Effect.asVoid(Deferred.succeed(ticked, undefined)),
              sleep: (millis: number) => Effect.sleep(millis)
            }
          }
        })
    })
    return { counters, store, lives, gate, disk }
  }).pipe(Effect.provideService(References.MinimumLogLevel, "None"))

/** A failed assertion must not leave the supervisor waiting for a gate or a clock that will not move. */
const makeCounters = (options?: ActorOptions) =>
  Effect.tap(supervise(options), ({ disk, gate }) =>
    Effect.addFinalizer(() =>
      Effect.all([gate.open, disk.open, Effect.forkDetach(TestClock.adjust("1 hour"))], { discard: true })
    )
  )

describe("an ask", () => {
  it.effect("builds the actor once for all who need it, and replies with the handler's result", () =>
    Effect.gen(function* () {
      const { counters, lives } = yield* makeCounters()
      const replies = yield* Effect.all([counters.ask("a", "add", 1), counters.ask("a", "add", 2)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(replies, [1, 3])
      assert.deepStrictEqual(lives, ["open a"])
    })
  )

  it.effect("handles the messages of a key in the order in which they were sent", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters()
      const sent = Array.from({ length: 500 }, () => counters.ask("a", "add", 1))
      const replies = yield* Effect.all(sent, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        replies,
        Array.from({ length: 500 }, (_, index) => index + 1)
      )
    })
  )

  it.effect("fails with the handler's typed failure, and the actor goes on", () =>
    Effect.gen(function* () {
      const { counters, lives } = yield* makeCounters()
      yield* counters.ask("a", "add", 5)
      const failure = yield* Effect.flip(counters.ask("a", "add", -1))
      assert.strictEqual(failure._tag, "Negative")
      assert.strictEqual(yield* counters.ask("a", "get"), 5)
      assert.deepStrictEqual(lives, ["open a"])
    })
  )

  it.effect("that is interrupted withdraws a message that was not begun", () =>
    Effect.gen(function* () {
      const { counters, gate } = yield* makeCounters()
      yield* gate.close
      const first = yield* Effect.forkChild(counters.ask("a", "add", 1), { startImmediately: true })
      const second = yield* Effect.forkChild(counters.ask("a", "add", 10), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(second)
      yield* gate.open
      yield* Fiber.join(first)
      assert.strictEqual(yield* counters.ask("a", "get"), 1)
    })
  )

  it.effect("fails with the typed failure of a build, which is not tried again by itself", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters()
      assert.strictEqual((yield* Effect.flip(counters.ask("missing", "get")))._tag, "NoSuchCounter")
      assert.strictEqual((yield* Effect.flip(counters.acquire("missing")))._tag, "NoSuchCounter")
      assert.deepInclude(counters.stats(), { buildFailures: 2, crashes: 0, residents: 0 })
    })
  )

  it.effect("is refused with MailboxFull beyond mailboxCapacity", () =>
    Effect.gen(function* () {
      const { counters, gate } = yield* makeCounters({ mailboxCapacity: 3 })
      yield* gate.close
      const asks = yield* Effect.forEach([1, 2, 3, 4], (n) =>
        Effect.tap(
          Effect.forkChild(counters.ask("a", "add", n), { startImmediately: true }),
          () => Effect.yieldNow
        )
      )
      assert.deepInclude(counters.stats(), { inFlight: 1, queued: 3 })
      const refusal = yield* Effect.flip(counters.ask("a", "add", 5))
      assert.deepInclude(refusal, { _tag: "MailboxFull", actor: "counter", key: "a", mailboxCapacity: 3 })
      assert.strictEqual(yield* counters.ask("b", "get"), 0, "another actor's mailbox is its own")
      yield* gate.open
      assert.deepStrictEqual(yield* Effect.forEach(asks, Fiber.join), [1, 3, 6, 10])
    })
  )
})

describe("a crash", () => {
  const policy = { maxRestarts: 2, restartWindowMillis: 60_000 } as const

  it.effect("fails the ask that caused it, and the rebuilt actor serves the ones that waited", () =>
    Effect.gen(function* () {
      const { counters, lives } = yield* makeCounters(policy)
      const crashing = yield* Effect.forkChild(Effect.flip(counters.ask("a", "crash")), {
        startImmediately: true
      })
      const waiting = yield* Effect.forkChild(counters.ask("a", "add", 7), { startImmediately: true })
      const failure = yield* Fiber.join(crashing)
      assert.deepInclude(failure, { _tag: "ActorCrashed", actor: "counter", key: "a" })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(waiting), 7)
      assert.deepStrictEqual(lives, ["open a", "close a", "open a"])
    })
  )

  it.effect("is also a handler that interrupts itself, or a failing fiber of the actor's own", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters(policy)
      assert.strictEqual((yield* Effect.flip(counters.ask("a", "interruptItself")))._tag, "ActorCrashed")
      yield* TestClock.adjust("1 second")
      yield* counters.ask("a", "breakTimer")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* counters.ask("a", "add", 1), 1)
      assert.strictEqual(counters.stats().crashes, 2)
    })
  )

  it.effect("leaves no state to peek at; the next acquirer gets the rebuilt one", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters(policy)
      assert.strictEqual((yield* counters.acquire("a")).bump(), 1)
      assert.strictEqual(counters.peek("a")?.value, 1)
      yield* Effect.flip(counters.ask("a", "crash"))
      assert.isUndefined(counters.peek("a"))
      const again = yield* Effect.forkChild(counters.acquire("a"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(again)).bump(), 2)
    })
  )

  it.effect("pauses 50 ms before the next life, doubling with each crash of the window", () =>
    Effect.gen(function* () {
      const { counters, lives } = yield* makeCounters(policy)
      yield* Effect.flip(counters.ask("a", "crash"))
      yield* TestClock.adjust(49)
      assert.deepStrictEqual(lives, ["open a", "close a"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(lives, ["open a", "close a", "open a"])
      yield* Effect.flip(counters.ask("a", "crash"))
      yield* TestClock.adjust(99)
      assert.strictEqual(lives.length, 4)
      yield* TestClock.adjust(1)
      assert.strictEqual(lives.length, 5)
    })
  )

  it.effect("beyond maxRestarts gives the actor up until the oldest crash has left the window", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters(policy)
      for (let crash = 0; crash < 3; crash++) {
        yield* Effect.flip(counters.ask("a", "crash"))
        yield* TestClock.adjust("10 seconds")
      }
      const expected = {
        _tag: "RestartIntensityExceeded",
        key: "a",
        maxRestarts: 2,
        restartWindowMillis: 60_000
      }
      const refusals: ReadonlyArray<object> = [
        yield* Effect.flip(counters.ask("a", "get")),
        yield* Effect.flip(counters.acquire("a"))
      ]
      for (const refusal of refusals) assert.deepInclude(refusal, expected)
      assert.strictEqual(yield* counters.ask("b", "get"), 0, "other actors are not concerned")
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* counters.ask("a", "get"), 0)
    })
  )

  it.effect("in every build answers those who wait with RestartIntensityExceeded", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters(policy)
      const ask = yield* Effect.forkChild(Effect.flip(counters.ask("broken", "get")), {
        startImmediately: true
      })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(ask))._tag, "RestartIntensityExceeded")
      assert.deepInclude(counters.stats(), { crashes: 3, escalations: 1, queued: 0, residents: 0 })
    })
  )
})

describe("passivation", () => {
  it.effect("ends an actor not used for maxIdleMillis; the next message builds it from its store", () =>
    Effect.gen(function* () {
      const { counters, lives } = yield* makeCounters({ maxIdleMillis: 60_000 })
      yield* counters.ask("a", "add", 4)
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(lives, ["open a"])
      yield* TestClock.adjust("31 seconds")
      assert.deepStrictEqual(lives, ["open a", "close a"])
      assert.strictEqual(counters.stats().residents, 0)
      assert.strictEqual(yield* counters.ask("a", "get"), 4)
    })
  )

  it.effect("spares an actor that is used through its state, or is at work", () =>
    Effect.gen(function* () {
      const { counters, lives } = yield* makeCounters({ maxIdleMillis: 60_000 })
      yield* counters.acquire("used")
      const ask = yield* Effect.forkChild(counters.ask("working", "sleep", 600_000), {
        startImmediately: true
      })
      for (let minute = 0; minute < 10; minute++) {
        counters.peek("used")?.bump()
        yield* TestClock.adjust("50 seconds")
      }
      assert.strictEqual(counters.peek("used")?.bump(), 11)
      assert.deepStrictEqual(lives, ["open used", "open working"])
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.join(ask)
    })
  )

  it.effect("hands a message that comes while the actor closes to the next life", () =>
    Effect.gen(function* () {
      const { counters, disk, lives } = yield* makeCounters({ maxIdleMillis: 60_000 })
      yield* counters.ask("a", "add", 4)
      yield* disk.close
      yield* TestClock.adjust("90 seconds")
      const ask = yield* Effect.forkChild(counters.ask("a", "add", 1), { startImmediately: true })
      yield* Effect.yieldNow
      assert.deepStrictEqual(lives, ["open a"])
      yield* disk.open
      assert.strictEqual(yield* Fiber.join(ask), 5)
      assert.deepStrictEqual(lives, ["open a", "close a", "open a"])
    })
  )

  it.effect("makes room at maxResidentActors: the longest idle actor is over before the next begins", () =>
    Effect.gen(function* () {
      const { counters, disk, lives } = yield* makeCounters({ maxResidentActors: 2 })
      yield* counters.ask("a", "add", 1)
      yield* counters.ask("b", "add", 1)
      yield* TestClock.adjust("5 minutes")
      yield* counters.ask("a", "get")
      yield* TestClock.adjust("5 minutes")
      yield* disk.close
      const ask = yield* Effect.forkChild(counters.ask("c", "get"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.deepStrictEqual(lives, ["open a", "open b"])
      yield* disk.open
      yield* Fiber.join(ask)
      assert.deepStrictEqual(lives, ["open a", "open b", "close b", "open c"])
    })
  )

  it.effect("cannot make room where every actor is at work: TooManyActors", () =>
    Effect.gen(function* () {
      const { counters } = yield* makeCounters({ maxResidentActors: 1 })
      const ask = yield* Effect.forkChild(counters.ask("a", "sleep", 1000), { startImmediately: true })
      const refusal = yield* Effect.flip(counters.ask("b", "get"))
      assert.deepInclude(refusal, { _tag: "TooManyActors", actor: "counter", maxResidentActors: 1 })
      yield* TestClock.adjust(1000)
      yield* Fiber.join(ask)
      assert.strictEqual(yield* counters.ask("b", "get"), 0)
    })
  )
})

describe("the end of a supervisor", () => {
  it.effect("works off what was taken, refuses what comes after, and closes every actor", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { counters, gate, lives, store } = yield* Scope.provide(supervise(), scope)
      yield* gate.close
      yield* counters.acquire("idle")
      const asks = yield* Effect.forEach([1, 2], (n) =>
        Effect.forkChild(counters.ask("a", "add", n), { startImmediately: true })
      )
      const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* Effect.yieldNow
      assert.deepInclude(yield* Effect.flip(counters.ask("a", "get")), {
        _tag: "ActorsStopped",
        actor: "counter"
      })
      yield* gate.open
      yield* Fiber.join(closed)
      assert.deepStrictEqual(yield* Effect.forEach(asks, Fiber.join), [1, 3])
      assert.deepStrictEqual(lives.slice().sort(), ["close a", "close idle", "open a", "open idle"])
      assert.strictEqual(store.get("a"), 3)
    })
  )

  it.effect("comes after 10 seconds at the latest: what is unfinished then fails with ActorsStopped", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { counters, gate, lives } = yield* Scope.provide(supervise(), scope)
      yield* gate.close
      const asks = yield* Effect.forEach([1, 2], (n) =>
        Effect.forkChild(Effect.flip(counters.ask("a", "add", n)), { startImmediately: true })
      )
      const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(closed.pollUnsafe())
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(closed)
      const failures = yield* Effect.forEach(asks, Fiber.join)
      assert.deepStrictEqual(
        failures.map((failure) => failure._tag),
        ["ActorsStopped", "ActorsStopped"]
      )
      assert.deepStrictEqual(lives, ["open a", "close a"])
    })
  )
})

describe("the numbers of a supervisor", () => {
  it.effect("are on /metrics while it lives, read when asked for", () =>
    Effect.gen(function* () {
      const registry = new Map()
      const shown = Effect.map(Metric.snapshot, (all) =>
        Object.fromEntries(
          all.map(({ id, state }) => [id.replace("signalbox_", ""), Object.values(state)[0]])
        )
      )
      yield* Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { counters } = yield* Scope.provide(supervise(), scope)
        yield* counters.ask("a", "get")
        yield* Effect.flip(counters.ask("b", "crash"))
        yield* TestClock.adjust("1 second")
        assert.deepInclude(yield* shown, {
          actors_resident: 2,
          actor_messages_handled_total: 1,
          actor_crashes_total: 1
        })
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(yield* shown, {})
      }).pipe(Effect.provideContext(Context.make(Metric.MetricRegistry, registry)))
    })
  )
})
