import { drainPending, Session } from "chdb"
import { mkdirSync } from "node:fs"
import { Slots } from "./Slots.ts"

interface EngineOptions {
  readonly directory: string
  readonly database: string
  readonly queryBytes: number
  readonly serverBytes: number
  readonly resultBytes: number
  readonly queryMillis: number
  readonly waiting: number
  /** called when a statement meets a damaged part */
  readonly onDamage: () => void
}

/**
 * Files of a part that are cut: a merge amid which the disk was full has left empty ones (chdb 3.4.0). A start takes the parts
 * that were merged in its place.
 */
const isDamage = (error: unknown): boolean =>
  error instanceof Error && error.message.includes("(CORRUPTED_DATA)")

export interface Statement {
  readonly sql: string
  readonly format: string
  readonly database: string | undefined
  /** ClickHouse settings by name */
  readonly settings: ReadonlyMap<string, string>
  /** values of `{name:Type}` in the statement, in the text form of ClickHouse's HTTP interface */
  readonly parameters: ReadonlyMap<string, string>
  /** called when the statement's turn comes: false if no caller waits for it any more */
  readonly isWanted: () => boolean
}

/** A statement's caller went away before its turn. */
export class NotWanted extends Error {}

/** Caches that ClickHouse sizes for a machine of its own. */
const cacheBytes = 64 * 1024 * 1024

/** One connection inserts, three read: a slow query never stands before an insert, nor an insert before a query. */
const readers = 3

/**
 * A string literal in which nothing but letters, digits and a few harmless signs is left as it is: every other ASCII
 * character is written as its code, so that no value can end the literal.
 */
export const literal = (text: string): string =>
  `'${text.replace(/[^A-Za-z0-9 _.,:\u0080-\uffff-]/g, (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`)}'`

const identifier = (text: string): string => `\`${text.replace(/[\\`]/g, (sign) => `\\${sign}`)}\``

const isName = (text: string): boolean => /^[A-Za-z_]\w{0,100}$/.test(text)

/**
 * The ClickHouse engine of the npm package chdb. A statement gets a connection of its own (0.1 ms): settings and
 * parameters live in connections and would otherwise leak into later statements, where for example a left-over
 * insert_deduplication_token silently drops rows.
 */
export class Engine {
  private readonly options: EngineOptions
  /** keeps the engine alive between statements */
  private readonly root: Session
  private readonly writer: Slots
  private readonly readers: Slots

  constructor(options: EngineOptions) {
    this.options = options
    mkdirSync(options.directory, { recursive: true })
    this.root = new Session(options.directory, {
      connectionArgs: [
        `--max_server_memory_usage=${options.serverBytes}`,
        `--mark_cache_size=${cacheBytes}`,
        `--index_mark_cache_size=${cacheBytes}`
      ]
    })
    this.root.query(`CREATE DATABASE IF NOT EXISTS ${identifier(options.database)}`)
    this.writer = new Slots(1, options.waiting)
    this.readers = new Slots(readers, options.waiting)
  }

  /** Rejects with chdb's error, whose message starts with ClickHouse's `Code: <number>.` */
  execute(statement: Statement): Promise<Uint8Array> {
    const slots = /^\s*INSERT\b/i.test(statement.sql) ? this.writer : this.readers
    return slots.use(async () => {
      if (!statement.isWanted()) throw new NotWanted()
      const session = new Session(this.options.directory)
      try {
        const result = await session.queryAsync(this.prelude(statement) + statement.sql, {
          format: statement.format
        })
        return result.bytes()
      } catch (error) {
        if (isDamage(error)) this.options.onDamage()
        throw error
      } finally {
        session.close()
      }
    })
  }

  /** Waits for what runs, then closes the tables. */
  async close(): Promise<void> {
    await drainPending()
    this.root.close()
    await drainPending()
  }

  private prelude(statement: Statement): string {
    const settings = new Map<string, string>([
      ["async_insert", "0"],
      ["max_insert_threads", "1"],
      // A thread for each core: by default a statement gets one alone while less than 1 GiB per thread is free.
      ["max_threads_min_free_memory_per_thread", "0"],
      ["max_memory_usage", String(this.options.queryBytes)],
      ["max_result_bytes", String(this.options.resultBytes)],
      ["max_execution_time", String(this.options.queryMillis / 1000)],
      ...statement.settings
    ])
    for (const [name, value] of statement.parameters) settings.set(`param_${name}`, value)
    const changes = Array.from(settings, ([name, value]) => {
      if (!isName(name))
        throw new Error("Code: 115. DB::Exception: Not a name of a setting. (UNKNOWN_SETTING)")
      return `${name}=${literal(value)}`
    })
    return `USE ${identifier(statement.database ?? this.options.database)}; SET ${changes.join(", ")}; `
  }
}
