import { Cause, Effect, Exit, Schema, type Scope, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { type IndexKey, type MirrorRow, MirrorTable } from "./MirrorTable.ts"

/** A poll read rows that the mirror cannot take, or took too long. */
export class MirrorFailed extends Schema.TaggedError<MirrorFailed>()("MirrorFailed", {
  table: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `the mirror of ${this.table} failed: ${this.problem}`
  }
}

export interface MirrorOptions<Row extends MirrorRow, Index extends string> {
  /** a table with `id` and `changed xid8`, set by the trigger mark_changed; its rows are never deleted */
  readonly table: string
  /** may throw; the poll then fails, and is tried again */
  readonly decode: (row: Readonly<Record<string, unknown>>) => Row
  readonly indexes: Readonly<Record<Index, IndexKey<Row>>>
  /** rows that are marked as deleted or revoked: not kept */
  readonly isGone: (row: Row) => boolean
}

export interface MirrorStatus {
  readonly rows: number
  /** true: Postgres has not been heard for a second, so what others changed since is not known here */
  readonly suspended: boolean
  /** age of what is known, in milliseconds */
  readonly staleMillis: number
}

export interface Mirror<Row extends MirrorRow, Index extends string> {
  readonly get: (id: string) => Row | undefined
  readonly by: (index: Index, key: string) => Row | undefined
  readonly all: () => IterableIterator<Row>
  /** After an own write, with what it RETURNed: visible here at once, everywhere else within a poll. */
  readonly applyLocal: (row: Row) => void
  /** Reads now what has changed. */
  readonly refreshNow: Effect.Effect<void, SqlError | MirrorFailed>
  readonly status: () => MirrorStatus
}

type ReadRow = Readonly<Record<string, unknown>> & { readonly snapshot_xmin: bigint }

/**
 * Reads what changed since the last poll and applies it. Exact under concurrency: a row carries the id of the
 * transaction that wrote it last, and every transaction below the snapshot's xmin has ended, so that `changed >= xmin
 * of the previous poll` covers all that the previous poll could not see, however long a transaction takes. Source:
 * PostgreSQL, "Transaction ID and Snapshot Information Functions".
 */
class Poller<Row extends MirrorRow, Index extends string> {
  readonly table: MirrorTable<Row, Index>
  heardAt = performance.now()
  private readonly options: MirrorOptions<Row, Index>
  private readonly sql: SqlClient
  /** undefined: nothing is known, read everything */
  private from: bigint | undefined
  /**
   * Ids applied by this process since the last poll began. An applied row may be older than one that a poll had read,
   * and one read by a running poll older than an applied one: these rows are read again, at any age.
   */
  private touched = new Set<string>()

  constructor(options: MirrorOptions<Row, Index>, sql: SqlClient, maximumRows: number) {
    this.options = options
    this.sql = sql
    this.table = new MirrorTable({ ...options, maximumRows })
  }

  applyLocal(row: Row): void {
    this.touched.add(row.id)
    this.table.put(row)
  }

  readonly poll: Effect.Effect<void, SqlError | MirrorFailed> = Effect.suspend(() => {
    const before = this.touched
    this.touched = new Set()
    const startedAt = performance.now()
    return this.read([...before]).pipe(
      Effect.flatMap((rows) =>
        Effect.try({
          try: () => {
            this.apply(rows)
            this.heardAt = startedAt
          },
          catch: (cause) => this.failed(cause instanceof Error ? cause.message : String(cause))
        })
      ),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) for (const id of before) this.touched.add(id)
        })
      )
    )
  })

  /** One statement is one snapshot: rows and xmin belong together. The join gives xmin even when no row has changed. */
  private read(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<ReadRow>, SqlError> {
    const { sql } = this
    const table = sql(this.options.table)
    const snapshot = sql`(SELECT pg_snapshot_xmin(pg_current_snapshot()) AS snapshot_xmin) AS s`
    if (this.from === undefined)
      return sql<ReadRow>`SELECT s.*, t.* FROM ${snapshot} LEFT JOIN ${table} AS t ON true`
    // A row with a transaction id from the future came with the dump of another cluster: it was read at the start.
    return sql<ReadRow>`SELECT s.*, t.* FROM ${snapshot} LEFT JOIN (
      SELECT * FROM ${table} WHERE id = ANY(${ids}::text[]) OR
        (changed >= ${String(this.from)}::text::xid8 AND changed < pg_snapshot_xmax(pg_current_snapshot()))
    ) AS t ON true`
  }

  failed(problem: string): MirrorFailed {
    return new MirrorFailed({ table: this.options.table, problem })
  }

  private apply(read: ReadonlyArray<ReadRow>): void {
    const xmin = read[0]?.snapshot_xmin ?? 0n
    if (this.from !== undefined && xmin < this.from) {
      // Transaction ids went back: the database was replaced. Nothing that is known counts any more.
      this.from = undefined
      this.table.clear()
      throw new Error("the database was replaced by another one; reading it anew")
    }
    for (const { snapshot_xmin: _, ...columns } of read) {
      if (columns["id"] === null) continue
      const row = this.options.decode(columns)
      if (!this.touched.has(row.id) && !this.table.put(row))
        throw new Error(`more than ${this.table.size} rows`)
    }
    this.from = xmin
  }
}

/**
 * Keeps an in-memory copy of a table: complete when this returns, from then on at most a poll behind. Without Postgres
 * it keeps serving what it has, says so in `status`, and catches up by itself.
 */
export const make = Effect.fnUntraced(function* <Row extends MirrorRow, Index extends string>(
  options: MirrorOptions<Row, Index>
): Effect.fn.Return<Mirror<Row, Index>, SqlError | MirrorFailed, Scope.Scope | SqlClient | AppConfig> {
  const { limits } = yield* AppConfig
  const poller = new Poller(options, yield* SqlClient, limits.mirrorRows)
  const oneAtATime = yield* Semaphore.make(1)
  const refreshNow = oneAtATime.withPermits(1)(poller.poll)
  yield* refreshNow

  const pollOnce = refreshNow.pipe(
    Effect.timeoutOrElse({
      duration: limits.mirrorPollTimeoutMillis,
      orElse: () => Effect.fail(poller.failed(`no answer in ${limits.mirrorPollTimeoutMillis} ms`))
    })
  )
  let isAway = false
  const pollForEver = Effect.gen(function* () {
    while (true) {
      yield* Effect.sleep(limits.mirrorPollMillis)
      const result = yield* Effect.exit(pollOnce)
      if (Exit.isFailure(result) && !isAway) {
        const problem = Cause.squash(result.cause)
        yield* Effect.logWarning(
          `${options.table} is served from memory: ${problem instanceof Error ? problem.message : String(problem)}`
        )
      }
      if (Exit.isSuccess(result) && isAway) yield* Effect.logInfo(`${options.table} is up to date again`)
      isAway = Exit.isFailure(result)
    }
  })
  yield* Effect.forkScoped(pollForEver)

  const staleMillis = (): number => Math.round(performance.now() - poller.heardAt)
  return {
    get: (id) => poller.table.get(id),
    by: (index, key) => poller.table.by(index, key),
    all: () => poller.table.all(),
    applyLocal: (row) => poller.applyLocal(row),
    refreshNow,
    status: () => ({
      rows: poller.table.size,
      suspended: staleMillis() > limits.mirrorStaleMillis,
      staleMillis: staleMillis()
    })
  }
})
