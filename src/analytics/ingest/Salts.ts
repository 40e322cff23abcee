import { randomBytes } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { dayMillis, dayOf } from "#streams/analytics/EventTime.ts"
import type { DaySalt } from "#streams/analytics/VisitorHash.ts"
import { SaltStore } from "./SaltStore.ts"

/**
 * The salt of today's visitor identities. It lives in memory and in Postgres for its UTC day only; with it goes the one
 * way to tell that two identities are one person. Source: contract/analytics#visitors.
 *
 * - Tomorrow's salt is agreed on as soon as today's is, so midnight depends on no store.
 * - Without Postgres a day whose salt was not agreed on gets this process's own. Once an event was hashed with it
 *   it stays for the day, also when Postgres is back and has another: an identity never changes under a visitor. (Every
 *   visitor's events go through one process, so two salts of one day make no visitor two.) Only if Postgres is
 *   away
 *   for the whole of a day *and* the process restarts within the next are visitors of that day counted anew.
 * - The day never goes back: when the clock does, the later day's salt goes on.
 */
export class Salts extends Context.Service<Salts, { readonly at: (millis: number) => DaySalt }>()(
  "signalbox/analytics/Salts"
) {
  static readonly layer = Layer.effect(
    Salts,
    Effect.suspend(() => make)
  )
}

/** Postgres is asked again this often while it has not answered. */
const retryMillis = 5_000

/** Longest pause between two looks at the clock, so that a jump of it is noticed. */
const lookMillis = 60_000

const bytesPerSalt = 32

class SaltDays {
  #current: DaySalt
  #next: DaySalt | undefined
  /** events were hashed with the current salt */
  #isUsed = false
  /** Postgres has the current salt, or another which came too late */
  #isAgreed = false

  constructor(day: number) {
    this.#current = freshSalt(day)
  }

  at(millis: number): DaySalt {
    this.#advance(dayOf(millis))
    this.#isUsed = true
    return this.#current
  }

  /** The days to ask Postgres about, and the salts to offer. */
  wanted(millis: number): ReadonlyArray<DaySalt> {
    this.#advance(dayOf(millis))
    const wanted: Array<DaySalt> = []
    if (!this.#isAgreed) wanted.push(this.#current)
    if (this.#next === undefined) wanted.push(freshSalt(this.#current.day + 1))
    return wanted
  }

  agreed(salt: DaySalt): void {
    if (salt.day === this.#current.day) {
      if (!this.#isUsed) this.#current = salt
      this.#isAgreed = true
    } else if (salt.day === this.#current.day + 1) this.#next = salt
  }

  get day(): number {
    return this.#current.day
  }

  #advance(day: number): void {
    if (day <= this.#current.day) return
    const next = this.#next
    this.#isAgreed = next?.day === day
    this.#current = next?.day === day ? next : freshSalt(day)
    this.#next = undefined
    this.#isUsed = false
  }
}

const freshSalt = (day: number): DaySalt => saltOf(day, randomBytes(bytesPerSalt))

const saltOf = (day: number, bytes: Uint8Array): DaySalt => ({
  day,
  text: Buffer.from(bytes).toString("hex")
})

const make = Effect.gen(function* () {
  const store = yield* SaltStore
  const days = new SaltDays(dayOf(yield* Clock.currentTimeMillis))
  let forgottenBefore = 0

  const tend = Effect.gen(function* () {
    for (const offered of days.wanted(yield* Clock.currentTimeMillis)) {
      const bytes = yield* store.agree(offered.day, Buffer.from(offered.text, "hex"))
      days.agreed(saltOf(offered.day, bytes))
    }
    if (forgottenBefore < days.day) {
      yield* store.forgetBefore(days.day)
      forgottenBefore = days.day
    }
  })

  const tendOrWarn = tend.pipe(
    Effect.as(true),
    Effect.catchTag("SaltStoreUnavailable", (error) =>
      Effect.as(
        Effect.logWarning("Visitors are hashed with a salt that Postgres does not have yet", error),
        false
      )
    )
  )

  // Before the first event, so that a restarted process goes on with the salt that it had.
  const isTended = yield* tendOrWarn
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      let wasTended = isTended
      while (true) {
        const now = yield* Clock.currentTimeMillis
        const untilMidnight = dayMillis - (now % dayMillis)
        yield* Effect.sleep(Math.min(untilMidnight, wasTended ? lookMillis : retryMillis))
        wasTended = yield* tendOrWarn
      }
    })
  )
  return Salts.of({ at: (millis) => days.at(millis) })
})
