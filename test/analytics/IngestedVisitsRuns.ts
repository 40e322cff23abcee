import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { visitorRange } from "#src/analytics/store/VisitorDays.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { forSeeds, type SeededRandom } from "#test/simulation/Seed.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { FaultyClickHouse } from "./FaultyClickHouse.ts"
import { sinkBatch, testLogId } from "./SinkBatches.ts"
import { visitsByDefinition, visitsInStore } from "./VisitOracle.ts"
import { VisitStream } from "./VisitStreams.ts"

const dayMillis = 86_400_000

/** The cases that the simulations have met: one that meets hardly any proves nothing. */
const met = {
  events: 0,
  visits: 0,
  parts: 0,
  adopted: 0,
  engaged: 0,
  recomputed: 0,
  failures: 0,
  restarts: 0
}

type Owner = Pick<StoredEvent, "day" | "visitor">

/**
 * The owner of each event, by definition: a ping belongs to its page view's visitor, found by its id within 24 hours
 * among those that came before it or with it; one's own come first, then the latest.
 */
class Owners {
  readonly stored: Array<Owner> = []
  readonly #views: Array<StoredEvent> = []

  store(events: ReadonlyArray<StoredEvent>): void {
    this.#views.push(...events.filter(({ kind, pv }) => kind === "pageview" && pv !== ""))
    for (const event of events) this.stored.push(event.kind === "engage" ? this.#ownerOf(event) : event)
  }

  #ownerOf(ping: StoredEvent): Owner {
    const views = this.#views.filter(({ pv }) => pv === ping.pv)
    if (views.some(({ day, visitor }) => day === ping.day && visitor === ping.visitor)) return ping
    const latest = views
      .filter(({ ts }) => ts <= ping.ts && ping.ts - ts <= dayMillis)
      .reduce<StoredEvent | undefined>((best, view) => (best && best.ts > view.ts ? best : view), undefined)
    if (latest !== undefined) met.adopted++
    return latest ?? ping
  }
}

/** One site's events on their way into the store, in batches, with failures, repetitions and restarts. */
class Ingest {
  readonly owners = new Owners()
  readonly #clickhouse: FaultyClickHouse
  readonly #random: SeededRandom
  readonly #events: ReadonlyArray<StoredEvent>
  readonly #logId: bigint
  #sink: EventSink.EventSinkService | undefined

  constructor(
    clickhouse: FaultyClickHouse,
    random: SeededRandom,
    events: ReadonlyArray<StoredEvent>,
    logId: bigint
  ) {
    this.#clickhouse = clickhouse
    this.#random = random
    this.#events = events
    this.#logId = logId
  }

  /** A new process: nothing in memory. */
  readonly #restart = Effect.gen({ self: this }, function* () {
    met.recomputed += this.#sink?.stats().recomputed ?? 0
    met.restarts++
    const residentLimits = {
      bytesMax: this.#random.chance(0.5) ? 100_000_000 : this.#random.below(20_000),
      generationMillis: 3_600_000
    }
    this.#sink = yield* Effect.provideService(
      EventSink.make({ residentLimits }),
      ClickHouse,
      this.#clickhouse.service
    )
    return this.#sink
  })

  readonly sink = Effect.suspend(() =>
    this.#sink === undefined ? this.#restart : Effect.succeed(this.#sink)
  )

  readonly run = Effect.gen({ self: this }, function* () {
    for (let from = 0; from < this.#events.length;) {
      const most = [5, 40, 400][this.#random.below(3)] ?? 1
      const to = Math.min(this.#events.length, from + 1 + this.#random.below(most))
      yield* this.#bring(from, to)
      from = to
    }
    met.recomputed += (yield* this.sink).stats().recomputed
  })

  #bring(from: number, to: number) {
    return Effect.gen({ self: this }, function* () {
      const way = this.#random.next()
      if (way < 0.1) return yield* this.#crashedBefore(from, to)
      if (way < 0.2) {
        yield* this.#attempt(from, to)
        return yield* this.#recover(from, to)
      }
      if (way < 0.4) return yield* this.#interrupted(from, to)
      if (way < 0.5) yield* this.#restart
      yield* this.#attempt(from, to)
    })
  }

  /** An event stored for the first time is stored under the owners known by then. */
  #attempt(from: number, to: number, recovering = false) {
    return Effect.gen({ self: this }, function* () {
      const sink = yield* this.sink
      const events = this.#events.slice(from, to)
      const result = yield* Effect.result(
        sink.write(sinkBatch(events, { from, recovering, logId: this.#logId }))
      )
      if (Result.isSuccess(result)) this.#noteStored(to)
      return Result.isSuccess(result)
    })
  }

  #noteStored(to: number): void {
    const known = this.owners.stored.length
    if (to > known) this.owners.store(this.#events.slice(known, to))
  }

  /** A crash left the batch in flight, whole or in part; the next process may take it in other portions. */
  #recover(from: number, to: number) {
    return Effect.gen({ self: this }, function* () {
      yield* this.#restart
      const middle = this.#random.chance(0.5) ? to : from + this.#random.below(to - from + 1)
      for (const [start, end] of [
        [from, middle],
        [middle, to]
      ] as const) {
        if (end > start) assert.isTrue(yield* this.#attempt(start, end, true))
      }
    })
  }

  /** Only the first events of the batch got there. */
  #crashedBefore(from: number, to: number) {
    return Effect.gen({ self: this }, function* () {
      const middle = from + this.#random.below(to - from + 1)
      if (middle > from) yield* this.#attempt(from, middle)
      yield* this.#recover(from, to)
    })
  }

  /** An insert fails, or seems to; the batch is repeated, by the same process or the next. */
  #interrupted(from: number, to: number) {
    return Effect.gen({ self: this }, function* () {
      const table = this.#random.chance(0.5) ? "events" : "visits"
      const when = this.#random.chance(0.5) ? "before" : "after"
      this.#clickhouse.failNext(table, when)
      const isDone = yield* this.#attempt(from, to)
      // Unowned pings make no visits: there was no insert to fail.
      assert.strictEqual(this.#clickhouse.heal(), isDone)
      if (isDone) return
      met.failures++
      if (table === "visits" || when === "after") this.#noteStored(to)
      if (this.#random.chance(0.5)) yield* this.#recover(from, to)
      else assert.isTrue(yield* this.#attempt(from, to))
    })
  }
}

const storedOwners = (site: string) =>
  Effect.map(
    Effect.flatMap(ClickHouse, (clickhouse) =>
      clickhouse.query<{ readonly seq: number; readonly day_number: number; readonly identity: string }>(
        `SELECT seq, toUInt16(day) AS day_number, toString(visitor) AS identity FROM events
        WHERE site = {site:String} ORDER BY seq`,
        { site }
      )
    ),
    (rows) =>
      rows.map(({ day_number, identity, seq }) => ({
        seq: Number(seq),
        day: Number(day_number),
        visitor: identity
      }))
  )

const simulate = (random: SeededRandom, seed: number) =>
  Effect.gen(function* () {
    const site = `st_simulated_${seed}`
    const { events } = new VisitStream(random, site)
    const ingest = new Ingest(yield* FaultyClickHouse.make, random, events, testLogId + BigInt(seed))
    yield* ingest.run
    assert.deepStrictEqual(
      yield* storedOwners(site),
      ingest.owners.stored.map(({ day, visitor }, seq) => ({ seq, day, visitor: String(visitor) }))
    )
    const visits = yield* visitsInStore(site)
    assert.deepStrictEqual(visits, yield* visitsByDefinition(site))
    met.events += events.length
    met.visits += visits.length
    met.parts += visits.filter(({ part }) => part > 0).length
    met.engaged += visits.filter(({ engaged_ms }) => Number(engaged_ms) > 0).length
    for (const day of new Set(ingest.owners.stored.map((owner) => owner.day))) {
      const compared = yield* (yield* ingest.sink).rebuild(visitorRange({ site, day }, {}), true)
      assert.deepInclude(compared, { missing: 0, wrong: 0, surplus: 0 })
    }
  })

/** Ingests the events of so many seeds. */
export const describeVisits = (seeds: number): void =>
  layer(TestStores.layer)("visits written at ingest", (it) => {
    it.effect(
      "are what a window query over the events says, whatever comes late, twice, at once or over midnight",
      () =>
        Effect.gen(function* () {
          yield* forSeeds(seeds, simulate)
          process.stdout.write(`visits met ${JSON.stringify(met)}\n`)
          for (const [what, count] of Object.entries(met)) assert.isAbove(count, 0, what)
        }),
      3_600_000
    )
  })
