import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as Supervisor from "#actors/kernel/Supervisor.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"

const limits = { mailboxCapacity: 4, maxResidentActors: 3, maxRestarts: 2 } as const
const restartWindowMillis = 5_000
const keys = ["a", "b", "c", "d", "e"]

/** The real course of events, kept outside of all actors: the store, every life and crash, and violations. */
class Ledger {
  readonly handled = new Map<string, Array<string>>(keys.map((key) => [key, []]))
  readonly living = new Set<string>()
  readonly crashedAt = new Map<string, Array<number>>(keys.map((key) => [key, []]))
  /** collected: a failed assertion inside an actor would be one crash more */
  readonly faults: Array<string> = []

  expect(isTrue: boolean, fault: string): void {
    if (!isTrue) this.faults.push(fault)
  }

  open(key: string): void {
    this.expect(!this.living.has(key), `two lives of ${key} at once`)
    this.living.add(key)
    this.expect(this.living.size <= limits.maxResidentActors, "more lives than maxResidentActors")
  }

  crash(key: string, nowMillis: number): void {
    const crashedAt = this.crashedAt.get(key) ?? []
    crashedAt.push(nowMillis)
    const recent = crashedAt.filter((at) => nowMillis - at < restartWindowMillis)
    this.expect(recent.length <= limits.maxRestarts + 1, `${recent.length} crashes of ${key} in one window`)
  }
}

/** An actor that writes down what it handles, and by chance is slow, crashes before or after, or is killed from inside. */
const supervise = (random: SeededRandom, ledger: Ledger) => {
  const crash = (key: string): Effect.Effect<never> =>
    Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
      ledger.crash(key, nowMillis)
      return Effect.die(new Error("chance"))
    })
  const pause = Effect.suspend(() => (random.chance(0.5) ? Effect.void : Effect.sleep(random.below(40))))
  return Supervisor.make({
    name: "simulated",
    ...limits,
    restartWindowMillis,
    maxIdleMillis: 200,
    build: (key: string, self) =>
      Effect.gen(function* () {
        yield* pause
        if (random.chance(0.05)) return yield* crash(key)
        if (random.chance(0.05)) return yield* Effect.fail("StoreAway" as const)
        ledger.open(key)
        yield* Effect.addFinalizer(() =>
          Effect.andThen(
            pause,
            Effect.sync(() => ledger.living.delete(key))
          )
        )
        if (random.chance(0.1)) yield* self.fork(Effect.andThen(Effect.sleep(random.below(300)), crash(key)))
        // Earlier messages are in the store; a life sees them all or it was built too early.
        const state = { count: ledger.handled.get(key)?.length ?? 0 }
        const append = (message: string) =>
          Effect.gen(function* () {
            yield* pause
            if (random.chance(0.03)) return yield* crash(key)
            assert.strictEqual(
              ledger.handled.get(key)?.push(message),
              ++state.count,
              "the life of a stale store"
            )
            yield* pause
            if (random.chance(0.03)) return yield* crash(key)
            return message
          })
        return { state, handlers: { append } }
      })
  })
}

type Exits = Map<string, { readonly key: string; readonly exit: Exit.Exit<string, unknown> }>

/** One sender: numbered messages to keys of its choice, one after the other, some of them given up while they wait. */
const send = (
  name: string,
  random: SeededRandom,
  actors: Effect.Success<ReturnType<typeof supervise>>,
  exits: Exits
) =>
  Effect.gen(function* () {
    for (let n = 0; n < 25; n++) {
      const key = keys[random.below(keys.length)] ?? ""
      const message = `${name}:${n}`
      const ask = actors.ask(key, "append", message)
      const asked = random.chance(0.1) ? Effect.timeout(ask, random.below(30)) : ask
      const exit = yield* Effect.exit(asked)
      assert.isFalse(exits.has(message), `two replies to ${message}`)
      exits.set(message, { key, exit })
      if (random.chance(0.1)) yield* Effect.exit(actors.acquire(key))
      yield* Effect.sleep(random.below(60))
    }
  })

/** Checks that every message has one outcome, the true one. */
const checkOutcomes = (exits: Exits, ledger: Ledger): void => {
  for (const [message, { exit, key }] of exits) {
    const times = (ledger.handled.get(key) ?? []).filter((handled) => handled === message).length
    if (Exit.isSuccess(exit)) {
      assert.strictEqual(exit.value, message, "somebody else's reply")
      assert.strictEqual(times, 1, `${message} was answered and handled ${times} times`)
      continue
    }
    const tag = JSON.stringify(exit.cause)
    if (/ActorCrashed|TimeoutError|ActorsStopped/.test(tag)) assert.isAtMost(times, 1, `${message} ran twice`)
    else assert.match(tag, /MailboxFull|RestartIntensityExceeded|TooManyActors|StoreAway/, message)
    if (/MailboxFull|RestartIntensityExceeded|TooManyActors|StoreAway/.test(tag))
      assert.strictEqual(times, 0, message)
  }
}

/** A sender sends one after the other, so per key its numbers rise. */
const checkOrder = (ledger: Ledger): void => {
  for (const [key, messages] of ledger.handled) {
    const last = new Map<string, number>()
    for (const message of messages) {
      const [sender = "", n] = message.split(":")
      assert.isAbove(Number(n), last.get(sender) ?? -1, `order at ${key}`)
      last.set(sender, Number(n))
    }
  }
}

const simulate = (random: SeededRandom) =>
  Effect.gen(function* () {
    const ledger = new Ledger()
    const exits: Exits = new Map()
    let nowMillis = 0
    const scope = yield* Scope.make()
    const actors = yield* Scope.provide(supervise(random, ledger), scope)
    // Detached, like the closing below: after a fault the clock stands still, and a child would be waited for.
    const senders = yield* Effect.forEach(
      Array.from({ length: 12 }, (_, index) => `s${index}`),
      (name) => Effect.forkDetach(send(name, random, actors, exits))
    )
    const advance = Effect.gen(function* () {
      yield* TestClock.adjust(10)
      nowMillis += 10
      const { inFlight, queued, residents } = actors.stats()
      assert.isAtMost(inFlight, residents, "one message at a time")
      assert.isAtMost(queued, limits.mailboxCapacity * keys.length)
    })
    while (senders.some((fiber) => fiber.pollUnsafe() === undefined)) {
      yield* advance
      assert.isBelow(nowMillis, 600_000, `senders without a reply: ${exits.size} outcomes`)
    }
    yield* Effect.forEach(senders, Fiber.join)
    const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void))
    while (closing.pollUnsafe() === undefined) yield* advance
    assert.deepStrictEqual(ledger.faults, [])
    assert.strictEqual(exits.size, 12 * 25, "every message has an outcome")
    assert.strictEqual(ledger.living.size, 0, "every life is over")
    checkOutcomes(exits, ledger)
    checkOrder(ledger)
  })

describe("actors under random crashes, passivations, refusals and impatient askers", () => {
  it.effect("lose no message, double no reply, keep the order per key, and stay within every bound", () =>
    forSeeds(40, simulate).pipe(Effect.provideService(References.MinimumLogLevel, "None"))
  )
})
