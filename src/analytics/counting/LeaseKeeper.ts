import { Clock, Deferred, Effect } from "effect"
import type { Limits } from "#src/Limits.ts"
import type { ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import type { StoreError } from "../store/EventStore.ts"
import { instant, type LeaseState } from "./CountingLease.ts"
import { highestEpoch, killVisitInserts, raise, visitInserts } from "./Fence.ts"
import type { CountingLeaseRow, Taken } from "./CountingLeaseRow.ts"

/** The process's counting, as the keeper of its lease sees it. */
export interface Counter {
  readonly holder: string
  /** events in this process's log that the store does not have */
  readonly behind: () => number
  /** brings what only memory knows up to what others counted: ids, realtime figures */
  readonly catchUp: Effect.Effect<void, StoreError>
  /** the offset of the next event */
  readonly nextOffset: () => number
}

interface KeeperOptions {
  readonly state: LeaseState
  readonly row: CountingLeaseRow
  readonly clickhouse: ClickHouseService
  readonly limits: Limits
  readonly lastsMillis: number
  readonly renewMillis: number
  readonly isShared: boolean
}

type Confirmation = "held" | "wanted" | "lost" | "unknown"
const unknown: Confirmation = "unknown"

/** Looks whether a state is reached, while it is not. */
const lookMillis = 50

/**
 * Takes the lease when it is free, keeps it, and gives it up: one fiber, which runs until the process ends. Its one state
 * is `LeaseState`; a failure of a store is an answer of its own here, never an end.
 */
export class LeaseKeeper {
  readonly #options: KeeperOptions
  /** the lease as it is held; its epoch may be lifted */
  #epoch: number | undefined
  /** ClickHouse knows the epoch, and refuses visits of earlier ones */
  #isRaised = false
  /** all is ready for counting, as long as the lease is held */
  #hasBegun = false
  #isPostgresAway = false
  #handOverFailedAt = Number.NEGATIVE_INFINITY

  constructor(options: KeeperOptions) {
    this.#options = options
  }

  /** @param settled done when the first try has ended: as holder, or standing by */
  run(counter: Counter, settled: Deferred.Deferred<void>): Effect.Effect<never> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const taken = yield* this.#take(counter)
        if (taken === undefined) {
          yield* Deferred.succeed(settled, undefined)
          yield* Effect.sleep(this.#options.limits.countingPollMillis)
        } else yield* this.#keep(taken, counter, settled)
      }
    })
  }

  /** Lets go, so that the next process need not wait. */
  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    const { row, state } = this.#options
    const epoch = this.#epoch
    this.#epoch = undefined
    state.become("standby")
    if (epoch === undefined) return Effect.void
    return this.#asked(row.release(this.#holder, epoch)).pipe(
      Effect.catch((error) =>
        Effect.logWarning(
          "The lease on counting runs out by itself: Postgres was not told that it is free",
          error
        )
      )
    )
  })

  #holder = ""

  #take(counter: Counter): Effect.Effect<Taken | undefined> {
    const { lastsMillis, limits, row, state } = this.#options
    this.#holder = counter.holder
    return Effect.gen({ self: this }, function* () {
      const askedAt = instant()
      const taken = yield* this.#asked(row.take(counter.holder, lastsMillis))
      if (taken !== undefined) {
        state.confirm(askedAt)
        return taken
      }
      // Events that this process accepted earlier are counted when it has the lease again.
      if (counter.behind() > 0) yield* this.#asked(row.want(counter.holder, 5 * limits.countingPollMillis))
      return undefined
    }).pipe(
      Effect.catch((error) =>
        Effect.as(Effect.logDebug("The lease on counting cannot be asked for", error), undefined)
      )
    )
  }

  /** From taking the lease to losing it. */
  #keep(taken: Taken, counter: Counter, settled: Deferred.Deferred<void>): Effect.Effect<void> {
    const { state } = this.#options
    return Effect.gen({ self: this }, function* () {
      this.#epoch = taken.epoch
      this.#isRaised = false
      this.#hasBegun = false
      state.become("taking-over")
      if (taken.waitMillis > 0) yield* Deferred.succeed(settled, undefined)
      const begun = Effect.andThen(this.#begin(taken, counter, settled), Effect.never)
      yield* Effect.raceFirst(begun, this.#renewing(counter))
      this.#epoch = undefined
      state.become("standby")
      yield* Effect.logWarning("This process stands by: another one counts events, or is about to")
    })
  }

  /**
   * No visit of an earlier epoch can be written any more, ids of others are known, and the one before has had to stop: only
   * then this process counts. Where it follows itself, or one that let go, events are taken even while ClickHouse is away.
   */
  #begin(taken: Taken, counter: Counter, settled: Deferred.Deferred<void>): Effect.Effect<void> {
    const { isShared, limits, state } = this.#options
    const ready = Effect.gen({ self: this }, function* () {
      yield* this.#raise
      this.#isRaised = true
      const raisedAt = performance.now()
      yield* this.#untilVisitsRest()
      yield* counter.catchUp
      yield* Effect.sleep(Math.max(0, taken.waitMillis - (performance.now() - raisedAt)))
    })
    let isTold = false
    const tell = (error: StoreError) =>
      Effect.suspend(() => {
        if (taken.waitMillis === 0) this.#open()
        if (isTold) return Effect.void
        isTold = true
        return Effect.andThen(
          Deferred.succeed(settled, undefined),
          Effect.logWarning("Counting begins when ClickHouse knows of it", error)
        )
      })
    const tried: Effect.Effect<void> = Effect.catch(ready, (error) =>
      Effect.andThen(
        tell(error),
        Effect.andThen(
          Effect.sleep(limits.countingPollMillis),
          Effect.suspend(() => tried)
        )
      )
    )
    return Effect.gen({ self: this }, function* () {
      yield* tried
      state.hold({ epoch: this.#epoch ?? taken.epoch, uncheckedTo: counter.nextOffset(), isShared })
      this.#open()
      yield* Deferred.succeed(settled, undefined)
      if (taken.waitMillis > 0) yield* Effect.logInfo("This process counts events, in the place of another")
    })
  }

  #open(): void {
    this.#hasBegun = true
    this.#options.state.become("counting")
  }

  /** A store that came from a copy may know of later epochs than the other: the lease goes beyond them. */
  readonly #raise: Effect.Effect<void, StoreError> = Effect.suspend(() => {
    const { clickhouse, row } = this.#options
    return Effect.gen({ self: this }, function* () {
      const epoch = this.#epoch ?? 0
      const highest = yield* highestEpoch(clickhouse)
      if (highest === epoch) return
      if (highest < epoch) return yield* raise(clickhouse, epoch)
      const isLifted = yield* this.#asked(row.lift(this.#holder, epoch, highest + 1)).pipe(
        Effect.catch((error) => Effect.as(Effect.logDebug("The epoch cannot be lifted now", error), false))
      )
      if (!isLifted)
        return yield* Effect.andThen(Effect.sleep(this.#options.limits.countingPollMillis), this.#raise)
      this.#epoch = highest + 1
      return yield* raise(clickhouse, highest + 1)
    })
  })

  /** Inserts into visits that began before are over, by themselves or by force. */
  #untilVisitsRest(): Effect.Effect<void, StoreError> {
    const { clickhouse } = this.#options
    return Effect.gen(function* () {
      while ((yield* visitInserts(clickhouse)) > 0) {
        yield* Effect.catchTag(killVisitInserts(clickhouse), "ClickHouseFailed", (error) =>
          Effect.logDebug("An insert of an earlier process is waited for: it may not be ended", error)
        )
        yield* Effect.sleep(lookMillis)
      }
    })
  }

  /** Asks again and again whether the lease is held; returns when it is not. */
  #renewing(counter: Counter): Effect.Effect<void> {
    const { renewMillis, state } = this.#options
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* Effect.sleep(state.state() === "unconfirmed" ? lookMillis : renewMillis)
        const answer = yield* this.#confirm()
        if (answer === "lost") return
        if (answer === "unknown" && !state.isConfirmed() && this.#hasBegun) state.become("unconfirmed")
        if (answer !== "unknown" && state.state() === "unconfirmed") state.become("counting")
        if (answer === "wanted" && (yield* this.#handOver(counter))) return
      }
    })
  }

  /**
   * Postgres is asked. While it is away, ClickHouse says whether a later epoch has begun: until one has, no other
   * process counts, and an outage of Postgres stops nothing.
   */
  #confirm(): Effect.Effect<Confirmation> {
    const epoch = this.#epoch ?? 0
    if (this.#options.state.isSuperseded(epoch)) return Effect.succeed("lost")
    // After a question without an answer both are asked at once, so that waiting for Postgres costs no time.
    if (!this.#isPostgresAway)
      return Effect.flatMap(this.#askPostgres(epoch), (answer) =>
        answer === "unknown" ? this.#askClickHouse(epoch) : Effect.succeed(answer)
      )
    const both = Effect.all([this.#askPostgres(epoch), this.#askClickHouse(epoch)], { concurrency: 2 })
    return Effect.map(both, ([ofPostgres, ofClickHouse]) =>
      ofClickHouse === "lost" || ofPostgres === "unknown" ? ofClickHouse : ofPostgres
    )
  }

  #askPostgres(epoch: number): Effect.Effect<Confirmation> {
    const { lastsMillis, row, state } = this.#options
    return Effect.gen({ self: this }, function* () {
      const askedAt = instant()
      const renewed = yield* this.#asked(row.renew(this.#holder, epoch, lastsMillis))
      this.#isPostgresAway = false
      // Lifted in between: the next question has the new epoch.
      if (renewed === undefined) return this.#epoch === epoch ? "lost" : "unknown"
      state.confirm(askedAt)
      return renewed.isWanted ? "wanted" : "held"
    }).pipe(
      Effect.catch((error) => {
        this.#isPostgresAway = true
        return Effect.as(Effect.logDebug("Postgres does not say who counts", error), unknown)
      })
    )
  }

  #askClickHouse(epoch: number): Effect.Effect<Confirmation> {
    const { clickhouse, state } = this.#options
    return Effect.gen({ self: this }, function* () {
      if (!this.#isRaised) return unknown
      const askedAt = instant()
      const highest = yield* this.#asked(highestEpoch(clickhouse))
      if (highest > epoch) return this.#epoch === epoch ? "lost" : "unknown"
      if (highest < epoch) return unknown
      state.confirm(askedAt)
      return "held"
    }).pipe(
      Effect.catch((error) =>
        Effect.as(Effect.logDebug("ClickHouse does not say who counts", error), unknown)
      )
    )
  }

  /** Takes nothing any more, and lets go once the log is drained; goes on where that takes too long. */
  #handOver(counter: Counter): Effect.Effect<boolean> {
    const { limits, state } = this.#options
    return Effect.gen({ self: this }, function* () {
      if (!this.#hasBegun || !state.isCounting()) return false
      if (performance.now() - this.#handOverFailedAt < limits.countingHandOverRetryMillis) return false
      state.become("taking-over")
      const startedAt = yield* Clock.currentTimeMillis
      while (counter.behind() > 0) {
        const passedMillis = (yield* Clock.currentTimeMillis) - startedAt
        if (passedMillis > limits.countingHandOverMillis || passedMillis < 0) {
          this.#handOverFailedAt = performance.now()
          state.become("counting")
          return false
        }
        yield* Effect.sleep(lookMillis)
      }
      yield* this.release
      return true
    })
  }

  #asked<A, E>(question: Effect.Effect<A, E>): Effect.Effect<A, E | NoAnswer> {
    const { countingAskMillis } = this.#options.limits
    return Effect.timeoutOrElse(question, {
      duration: countingAskMillis,
      orElse: () => Effect.fail(new NoAnswer(`no answer in ${countingAskMillis} ms`))
    })
  }
}

class NoAnswer extends Error {
  readonly _tag = "NoAnswer"
}
