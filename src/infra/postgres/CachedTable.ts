import { Cause, Effect, Exit, Schema, type Scope, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import type { NotFound } from "#schemas/core/Problem.ts"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import * as Table from "./Table.ts"

/** A poll read rows that cannot be kept, or took too long. */
export class CacheFailed extends Schema.TaggedError<CacheFailed>()("CacheFailed", {
  table: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `the copy of ${this.table} in memory failed: ${this.problem}`
  }
}

/** Finds a row by something else than its id; undefined: not to be found by this index. Keys are unique. */
type IndexKey<Row> = (row: Row) => string | undefined

/**
 * `name`: a table with `id` and `changed xid8`, set by the trigger mark_changed. Its rows are deleted only when they have
 * been gone for a day (Sweep.ts).
 */
interface CachedTableOptions<M extends Table.RowModel, Index extends string> extends Table.TableOptions<M> {
  readonly indexes: Readonly<Record<Index, IndexKey<M["Type"]>>>
}

export interface CacheStatus {
  readonly rows: number
  /** true: Postgres has not been heard for a second, so what others changed since is not known here */
  readonly suspended: boolean
  /** age of what is known, in milliseconds */
  readonly staleMillis: number
}

/** The rows of a table that are not gone, in memory, and the table itself. Own writes are visible here once they are committed. */
export interface CachedTable<M extends Table.RowModel, Index extends string = never> extends Table.Table<M> {
  readonly get: (id: string) => M["Type"] | undefined
  readonly find: (id: string, owner: string | undefined) => Effect.Effect<M["Type"], NotFound>
  readonly by: (index: Index, key: string) => M["Type"] | undefined
  readonly all: () => IterableIterator<M["Type"]>
  /** the rows of an owner, or of all where it is undefined; oldest first */
  readonly list: (owner: string | undefined) => ReadonlyArray<M["Type"]>
  /** After an own write by hand-written SQL: visible here at once, everywhere else within a poll. */
  readonly applyLocal: (row: M["Type"]) => void
  /** Reads now what has changed. */
  readonly refreshNow: Effect.Effect<void, SqlError | CacheFailed>
  readonly status: () => CacheStatus
}

/** Rows by id and by further keys. Knows nothing of Postgres. */
class Rows<Row extends { readonly id: string }, Index extends string> {
  private readonly rows = new Map<string, Row>()
  private readonly indexes = new Map<
    Index,
    { readonly key: IndexKey<Row>; readonly ids: Map<string, string> }
  >()
  private readonly maximum: number

  constructor(indexes: Readonly<Record<Index, IndexKey<Row>>>, maximum: number) {
    for (const name in indexes) this.indexes.set(name, { key: indexes[name], ids: new Map() })
    this.maximum = maximum
  }

  get size(): number {
    return this.rows.size
  }

  get(id: string): Row | undefined {
    return this.rows.get(id)
  }

  by(index: Index, key: string): Row | undefined {
    const id = this.indexes.get(index)?.ids.get(key)
    return id === undefined ? undefined : this.rows.get(id)
  }

  all(): IterableIterator<Row> {
    return this.rows.values()
  }

  /** false: memory is full, and the row is not in it */
  put(row: Row): boolean {
    const before = this.rows.get(row.id)
    if (before === undefined && this.rows.size >= this.maximum) return false
    if (before !== undefined) this.unindex(before)
    this.rows.set(row.id, row)
    for (const { ids, key } of this.indexes.values()) {
      const value = key(row)
      if (value !== undefined) ids.set(value, row.id)
    }
    return true
  }

  drop(id: string): void {
    const row = this.rows.get(id)
    if (row === undefined) return
    this.rows.delete(id)
    this.unindex(row)
  }

  clear(): void {
    this.rows.clear()
    for (const { ids } of this.indexes.values()) ids.clear()
  }

  private unindex(row: Row): void {
    for (const { ids, key } of this.indexes.values()) {
      const value = key(row)
      // Another row may hold the key by now.
      if (value !== undefined && ids.get(value) === row.id) ids.delete(value)
    }
  }
}

/** A row of a poll: the snapshot's xmin and time, and a row of the table, or nulls where none has changed. */
interface PolledRow {
  readonly snapshot_xmin: bigint
  readonly snapshot_millis: number
  readonly is_gone: boolean | null
  readonly id: string | null
}

/**
 * Reads what changed since the last poll and applies it. Exact under concurrency: a row carries the id of the
 * transaction that wrote it last, and every transaction below the snapshot's xmin has ended, so that `changed >= xmin
 * of the previous poll` covers all that the previous poll could not see, however long a transaction takes. Source:
 * PostgreSQL, "Transaction ID and Snapshot Information Functions".
 */
class Poller<M extends Table.RowModel, Index extends string> {
  readonly rows: Rows<M["Type"], Index>
  heardAt = performance.now()
  private readonly table: string
  private readonly unheardMillisMax: number
  private readonly read: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<PolledRow>, SqlError>
  private readonly decode: (row: unknown) => M["Type"]
  /** undefined: nothing is known, read everything */
  private last: { readonly xmin: bigint; readonly millis: number } | undefined
  /**
   * Ids applied by this process since the last poll began. What it applied may be older than what a poll had read, and
   * what a running poll has read may be older than what it applied: these rows are read again, whatever their age.
   */
  private touched = new Set<string>()

  constructor(options: CachedTableOptions<M, Index>, sql: SqlClient, limits: Limits) {
    this.table = options.name
    this.unheardMillisMax = limits.goneMillis / 2
    this.rows = new Rows(options.indexes, limits.cacheRows)
    this.decode = Schema.decodeUnknownSync(options.model)
    const { columns, live } = Table.make(sql, options)
    // One statement is one snapshot: rows and xmin belong together. The join gives xmin even when no row has changed.
    this.read = (ids) => sql<PolledRow>`SELECT s.*, t.* FROM (
        SELECT pg_snapshot_xmin(pg_current_snapshot()) AS snapshot_xmin,
          extract(epoch FROM now())::float8 * 1000 AS snapshot_millis) AS s
      LEFT JOIN (SELECT ${columns}, NOT ${live} AS is_gone FROM ${sql(options.name)} WHERE ${this.isNew(sql, ids, live)}
      ) AS t ON true`
  }

  put(row: M["Type"]): void {
    this.touched.add(row.id)
    this.rows.put(row)
  }

  drop(id: string): void {
    this.touched.add(id)
    this.rows.drop(id)
  }

  readonly poll: Effect.Effect<void, SqlError | CacheFailed> = Effect.suspend(() => {
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

  failed(problem: string): CacheFailed {
    return new CacheFailed({ table: this.table, problem })
  }

  /** A row with a transaction id from the future came with the dump of another cluster: it was read at the start. */
  private isNew(sql: SqlClient, ids: ReadonlyArray<string>, live: Fragment): Fragment {
    if (this.last === undefined) return live
    return sql`id = ANY(${ids}::text[]) OR (changed >= ${String(this.last.xmin)}::text::xid8
      AND changed < pg_snapshot_xmax(pg_current_snapshot()))`
  }

  private apply(polled: ReadonlyArray<PolledRow>): void {
    const { snapshot_millis: millis = 0, snapshot_xmin: xmin = 0n } = polled[0] ?? {}
    if (this.last !== undefined && xmin < this.last.xmin) {
      // Transaction ids went back: the database was replaced. Nothing that is known counts any more.
      this.last = undefined
      this.rows.clear()
      throw new Error("the database was replaced by another one; reading it anew")
    }
    if (this.last !== undefined && millis - this.last.millis > this.unheardMillisMax) {
      this.last = undefined
      throw new Error("rows that went since the last poll may be deleted; reading all of them anew")
    }
    if (this.last === undefined) this.forgetOthers()
    for (const row of polled) {
      if (row.id === null || this.touched.has(row.id)) continue
      if (row.is_gone === true) this.rows.drop(row.id)
      else if (!this.rows.put(this.decode(row))) throw new Error(`more than ${this.rows.size} rows`)
    }
    this.last = { xmin, millis }
  }

  /** Before everything is read anew: only what was applied while it was read stays. */
  private forgetOthers(): void {
    const own = Array.from(this.touched, (id) => this.rows.get(id))
    this.rows.clear()
    for (const row of own) if (row !== undefined) this.rows.put(row)
  }
}

const millisOf = ({ created_at, createdAt = created_at }: Table.RowModel["Type"]): number =>
  createdAt?.getTime() ?? 0

/**
 * Keeps an in-memory copy of a table: complete when this returns, from then on at most a poll behind. Without Postgres
 * it keeps serving what it has, says so in `status`, and catches up by itself.
 */
export const make = Effect.fnUntraced(function* <M extends Table.RowModel, Index extends string>(
  options: CachedTableOptions<M, Index>
): Effect.fn.Return<CachedTable<M, Index>, SqlError | CacheFailed, Scope.Scope | SqlClient | AppConfig> {
  const { limits } = yield* AppConfig
  const sql = yield* SqlClient
  const poller = new Poller(options, sql, limits)
  const oneAtATime = yield* Semaphore.make(1)
  const refreshNow = oneAtATime.withPermits(1)(poller.poll)
  yield* refreshNow

  const pollOnce = refreshNow.pipe(
    Effect.timeoutOrElse({
      duration: limits.cachePollTimeoutMillis,
      orElse: () => Effect.fail(poller.failed(`no answer in ${limits.cachePollTimeoutMillis} ms`))
    })
  )
  let isAway = false
  const pollForEver = Effect.gen(function* () {
    while (true) {
      yield* Effect.sleep(limits.cachePollMillis)
      const result = yield* Effect.exit(pollOnce)
      if (Exit.isFailure(result) && !isAway) {
        const problem = Cause.squash(result.cause)
        yield* Effect.logWarning(
          `${options.name} is served from memory: ${problem instanceof Error ? problem.message : String(problem)}`
        )
      }
      if (Exit.isSuccess(result) && isAway) yield* Effect.logInfo(`${options.name} is up to date again`)
      isAway = Exit.isFailure(result)
    }
  })
  yield* Effect.forkScoped(pollForEver)

  const staleMillis = (): number => Math.round(performance.now() - poller.heardAt)
  const { rows } = poller
  return {
    ...Table.make(sql, options, { put: (row) => poller.put(row), drop: (id) => poller.drop(id) }),
    get: (id) => rows.get(id),
    find: (id, owner) => {
      const row = rows.get(id)
      return row !== undefined && (owner === undefined || row.user_id === owner)
        ? Effect.succeed(row)
        : Effect.fail(Table.notFound(options.title))
    },
    by: (index, key) => rows.by(index, key),
    all: () => rows.all(),
    list: (owner) =>
      Array.from(rows.all())
        .filter(({ user_id }) => owner === undefined || user_id === owner)
        .sort((a, b) => millisOf(a) - millisOf(b) || (a.id < b.id ? -1 : 1)),
    applyLocal: (row) => poller.put(row),
    refreshNow,
    status: () => ({
      rows: rows.size,
      suspended: staleMillis() > limits.cacheStaleMillis,
      staleMillis: staleMillis()
    })
  }
})
