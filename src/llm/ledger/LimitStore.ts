import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  type GrantAnswer,
  type GrantAsk,
  LimitGrants,
  LimitsAway,
  type LimitsListener
} from "#actors/llm/LimitGrants.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { CallLog } from "#src/llm/usage/CallLog.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"
import { Listener } from "#src/infra/postgres/Listener.ts"
import { LeaseBook } from "./LeaseBook.ts"

/** This process's leases in Postgres, under the name of its owner. */
export class LimitStore extends Context.Service<
  LimitStore,
  LimitGrants["Service"] & {
    /** the id of the log of calls, in hexadecimal */
    readonly owner: string
    /** Sends Postgres all returns, and gives up the rest: at the start and at the end. */
    readonly release: Effect.Effect<void, SqlError>
    /** Sends Postgres a sign of life, and learns whether others have taken this process for dead. */
    readonly heartbeat: Effect.Effect<void, SqlError>
    /** Gives up the leases of owners that have been silent for too long. */
    readonly sweep: Effect.Effect<number, SqlError>
  }
>()("signalbox/llm/LimitStore") {
  static readonly layer = Layer.effect(
    LimitStore,
    Effect.flatMap(CallLog, ({ log }) => make(log.id.toString(16).padStart(16, "0")))
  ).pipe(Layer.provide(Listener.layer))
}

const decodeGrants = Schema.decodeUnknownSync(
  Schema.Array(
    Schema.Struct({
      limit_id: Schema.String,
      window_millis: Schema.String,
      ends_in_millis: Schema.NullOr(Schema.Number),
      granted_total: Schema.String,
      available: Schema.NullOr(Schema.String),
      leased_by_others: Schema.String
    })
  )
)

interface Lease {
  readonly limit_id: string
  readonly window_millis: string
  readonly granted_total: string
}

const away = (error: { readonly message: string }): LimitsAway => new LimitsAway({ problem: error.message })

/** The limits of a statement that has no answer after so long are away. */
const answeredWithin = <A>(
  statement: Effect.Effect<A, LimitsAway>,
  millis: number,
  onAbandon?: () => void
): Effect.Effect<A, LimitsAway> =>
  Effect.catchTag(abandonedAfter(statement, millis, onAbandon), "TimeoutError", () =>
    Effect.fail(new LimitsAway({ problem: `no answer in ${millis} ms` }))
  )

const make = Effect.fnUntraced(function* (owner: string) {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const clock = yield* Clock.Clock
  const store = new Store(owner, sql, limits, () => clock.currentTimeMillisUnsafe())
  yield* store.heartbeat
  const fork = (effect: Effect.Effect<void>) => Effect.forkScoped(Effect.forever(effect))
  // One answer that is lost must not be the last sign of life.
  const often = (effect: Effect.Effect<unknown, SqlError>, everyMillis: number) => {
    const once = Effect.orElseSucceed(Effect.timeout(effect, everyMillis), () => undefined)
    return fork(Effect.delay(Effect.asVoid(once), everyMillis))
  }
  yield* fork(store.settleUp)
  yield* often(store.heartbeat, limits.ledgerHeartbeatMillis)
  yield* often(store.sweep, limits.ledgerSweepEveryMillis)
  const { on } = yield* Listener
  // A call that waits asks again by itself: missed words are no loss.
  yield* on("ledger", { heard: (payload) => store.heard(payload), opened: () => undefined })
  return store.service
})

class Store {
  readonly owner: string
  private readonly sql: SqlClient
  private readonly limits: Limits
  private readonly wallMillis: () => number
  private readonly book = new LeaseBook()
  private readonly listeners = new Set<LimitsListener>()
  private generation = -1
  private beatAtMillis = -Infinity
  /** limits of which a statement may have granted an amount that is not known here */
  private readonly unsure = new Set<string>()
  private readonly asking = new Map<string, number>()
  private nudge: () => void = () => undefined

  constructor(owner: string, sql: SqlClient, limits: Limits, wallMillis: () => number) {
    this.owner = owner
    this.sql = sql
    this.limits = limits
    this.wallMillis = wallMillis
  }

  get service(): LimitStore["Service"] {
    return {
      owner: this.owner,
      grant: (asks) => this.grant(asks),
      giveBack: (limit, windowStart, amount, tellUser) => {
        this.book.giveBack(limit, windowStart, amount, tellUser)
        this.nudge()
      },
      epoch: () => this.epoch(),
      recall: (userId) => this.recall(userId),
      listen: (listener) => void this.listeners.add(listener),
      release: this.release,
      heartbeat: this.heartbeat,
      sweep: this.sweep
    }
  }

  /** Others give the leases up after `ledgerSweepMillis` of silence: this process stops using them a bit earlier. */
  private epoch(): number | undefined {
    return performance.now() < this.beatAtMillis + this.limits.ledgerSweepMillis * 0.9
      ? this.generation
      : undefined
  }

  readonly heartbeat: Effect.Effect<void, SqlError> = Effect.suspend(() => {
    const at = performance.now()
    return Effect.map(
      this.sql<{ generation: number }>`INSERT INTO owners AS o (id) VALUES (${this.owner})
        ON CONFLICT (id) DO UPDATE SET heartbeat = clock_timestamp() RETURNING o.generation`,
      (rows) => {
        this.beatAtMillis = at
        this.begin(rows[0]?.generation ?? 0)
      }
    )
  })

  readonly release: Effect.Effect<void, SqlError> = Effect.suspend(() =>
    Effect.map(this.sql<{ generation: number }>`SELECT ledger_release(${this.owner}) AS generation`, (rows) =>
      this.begin(rows[0]?.generation ?? 0)
    )
  )

  readonly sweep: Effect.Effect<number, SqlError> = Effect.suspend(() => {
    const silentMillis = this.limits.ledgerSweepMillis
    this.book.forget(this.wallMillis())
    return Effect.map(
      this.sql`SELECT ledger_release(o.id) FROM (
        SELECT id FROM owners WHERE heartbeat < clock_timestamp() - ${silentMillis} * interval '1 millisecond'
          AND id <> ${this.owner} AND EXISTS (SELECT 1 FROM leases WHERE owner = owners.id)
        FOR UPDATE SKIP LOCKED) AS o`,
      (rows) => rows.length
    )
  })

  private begin(generation: number): void {
    if (generation === this.generation) return
    this.generation = generation
    this.book.clear()
    this.unsure.clear()
  }

  private grant(asks: ReadonlyArray<GrantAsk>): Effect.Effect<ReadonlyArray<GrantAnswer>, LimitsAway> {
    return Effect.suspend(() => {
      const { generation } = this
      if (this.epoch() === undefined)
        return Effect.fail(away({ message: "Postgres has not been heard for long" }))
      if (asks.length === 0) return Effect.succeed([])
      const texts = (of: (ask: GrantAsk) => bigint | string): ReadonlyArray<string> =>
        asks.map((ask) => String(of(ask)))
      const query = this.sql`SELECT limit_id, window_millis, ends_in_millis, granted_total, available, leased_by_others
        FROM ledger_grant(${this.owner}, ${generation}, ${texts(({ limit }) => limit)}::text[],
          ${texts(({ need }) => need)}::text[]::numeric[], ${texts(({ want }) => want)}::text[]::numeric[],
          ${texts(({ more }) => more)}::text[]::numeric[])`
      for (const { limit } of asks) this.asking.set(limit, (this.asking.get(limit) ?? 0) + 1)
      let isAwaited = true
      const statement = query.pipe(
        Effect.onError(() => Effect.sync(() => asks.forEach(({ limit }) => this.unsure.add(limit)))),
        Effect.ensuring(Effect.sync(() => asks.forEach(({ limit }) => this.asked(limit)))),
        Effect.mapError(away),
        Effect.flatMap((rows) => this.answers(rows, generation)),
        Effect.tap((answers) =>
          Effect.sync(() => {
            if (isAwaited) return
            for (const { granted, limit, windowStart } of answers)
              this.book.giveBack(limit, windowStart, granted)
          })
        )
      )
      return answeredWithin(statement, this.limits.ledgerGrantMillis, () => {
        isAwaited = false
      })
    })
  }

  private asked(limit: string): void {
    const others = (this.asking.get(limit) ?? 1) - 1
    if (others === 0) this.asking.delete(limit)
    else this.asking.set(limit, others)
    if (this.unsure.size > 0) this.nudge()
  }

  private answers(rows: ReadonlyArray<object>, generation: number) {
    if (rows.length > 0 && generation === this.generation) {
      return Effect.succeed(
        decodeGrants(rows).map((row): GrantAnswer => ({
          limit: row.limit_id,
          windowStart: Number(row.window_millis),
          endsInMillis: row.ends_in_millis ?? Infinity,
          granted: this.book.heard(row.limit_id, Number(row.window_millis), BigInt(row.granted_total)),
          available: row.available === null ? undefined : BigInt(row.available),
          others: BigInt(row.leased_by_others),
          returning: this.book.returning(row.limit_id, Number(row.window_millis))
        }))
      )
    }
    const lost = Effect.fail(away({ message: "others have given up the leases of this process" }))
    return Effect.andThen(Effect.mapError(this.heartbeat, away), lost)
  }

  /** Waits until there is news for Postgres, and sends it, with any number of tries. */
  readonly settleUp: Effect.Effect<void> = Effect.suspend(() =>
    this.awaitUnsaid.pipe(
      Effect.andThen(Effect.andThen(this.sayReturns, this.findUnheard)),
      Effect.catch(() => Effect.sleep(this.limits.ledgerRetryMillis))
    )
  )

  private readonly awaitUnsaid = Effect.callback<void>((resume) => {
    const isDue = (): boolean => this.book.hasUnsaid || this.unsureNow().length > 0
    if (isDue()) return resume(Effect.void)
    this.nudge = () => {
      if (isDue()) resume(Effect.void)
    }
  })

  private readonly sayReturns = Effect.suspend(() => {
    const unsaid = this.book.takeUnsaid()
    const { told, totals } = unsaid
    const { generation } = this
    if (totals.length === 0) return Effect.void
    return this.sql`SELECT ledger_return(${this.owner}, ${generation}, ${totals.map(({ limit }) => limit)}::text[],
        ${totals.map(({ windowStart }) => String(windowStart))}::text[]::bigint[],
        ${totals.map(({ returned }) => String(returned))}::text[]::numeric[], ${told}::text[])`.pipe(
      Effect.timeout(this.limits.ledgerGrantMillis),
      Effect.tap(() =>
        Effect.sync(() => {
          if (generation === this.generation) this.book.said(unsaid)
        })
      ),
      Effect.onError(() =>
        Effect.sync(() => {
          if (generation === this.generation) this.book.notSaid(unsaid)
        })
      )
    )
  })

  private unsureNow(): ReadonlyArray<string> {
    return Array.from(this.unsure).filter((limit) => !this.asking.has(limit))
  }

  /** Gives back the grants of statements without an answer. */
  private readonly findUnheard = Effect.suspend(() => {
    const limits = this.unsureNow()
    const { generation } = this
    if (limits.length === 0) return Effect.void
    for (const limit of limits) this.unsure.delete(limit)
    return this.sql<Lease>`SELECT limit_id, round(extract(epoch FROM window_start) * 1000)::text AS window_millis,
        granted::text AS granted_total FROM leases WHERE owner = ${this.owner} AND limit_id = ANY(${limits}::text[])`.pipe(
      Effect.timeout(this.limits.ledgerGrantMillis),
      Effect.map((rows) => {
        if (generation !== this.generation) return
        for (const { granted_total, limit_id, window_millis } of rows) {
          const unheard = this.book.heard(limit_id, Number(window_millis), BigInt(granted_total))
          if (unheard > 0n) this.book.giveBack(limit_id, Number(window_millis), unheard)
        }
      }),
      Effect.onError(() => Effect.sync(() => limits.forEach((limit) => this.unsure.add(limit))))
    )
  })

  private recall(userId: string): Effect.Effect<void, LimitsAway> {
    const statement = this.sql`SELECT pg_notify('ledger', ${`recall ${this.owner} ${userId}`})`
    return Effect.asVoid(answeredWithin(Effect.mapError(statement, away), this.limits.ledgerGrantMillis))
  }

  /** `recall|returned <owner> <user>`; a change of a key's cap comes from the owner `-`. */
  heard(payload: string): void {
    const [what, owner, userId] = payload.split(" ")
    if (owner === this.owner || userId === undefined) return
    for (const listener of this.listeners) {
      if (what === "recall") listener.recalled(userId)
      else listener.returned(userId)
    }
  }
}
