import { Context, Effect, Layer, Schedule } from "effect"
import { Readable } from "node:stream"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { ClickHouseClients } from "./ClickHouseClients.ts"
import { ClickHouseEndpoint } from "./ClickHouseEndpoint.ts"
import { type ClickHouseFailed, type ClickHouseUnavailable, isLostConnection } from "./ClickHouseFailed.ts"

/** Settings of one statement, by ClickHouse's names. */
export type Settings = Readonly<Record<string, string | number>>

interface InsertOptions {
  readonly format: "RowBinary" | "Native" | "JSONEachRow"
  /** insert_deduplication_token: the same token with the same rows is written once, within the table's window */
  readonly token?: string
  /** rows are taken only where this holds, by ClickHouse's own word once the insert has begun */
  readonly condition?: {
    readonly sql: string
    /** ClickHouse types of the columns, in their order */
    readonly types: ReadonlyArray<string>
  }
}

export interface ClickHouseService {
  /**
   * The rows of a SELECT. Values travel as parameters: `{name:Type}` in the text, never spliced into it.
   * 64-bit integers arrive as JSON numbers: select `toString(x)` where 2^53 is not enough.
   */
  readonly query: <A>(
    sql: string,
    parameters?: Readonly<Record<string, unknown>>,
    settings?: Settings
  ) => Effect.Effect<ReadonlyArray<A>, ClickHouseUnavailable | ClickHouseFailed>
  /** All rows of `body` or, after ClickHouseFailed, none. After ClickHouseUnavailable nothing is known. */
  readonly insert: (
    table: string,
    columns: ReadonlyArray<string>,
    body: Uint8Array | ReadonlyArray<Uint8Array>,
    options: InsertOptions
  ) => Effect.Effect<void, ClickHouseUnavailable | ClickHouseFailed>
  /** Writes no row, and fails where an insert of any row would: without the table, a column or the permission. */
  readonly checkInsert: (
    table: string,
    columns: ReadonlyArray<string>
  ) => Effect.Effect<void, ClickHouseUnavailable | ClickHouseFailed>
  /** A statement without rows: CREATE, ALTER, OPTIMIZE … */
  readonly command: (
    sql: string,
    parameters?: Readonly<Record<string, unknown>>,
    settings?: Settings
  ) => Effect.Effect<void, ClickHouseUnavailable | ClickHouseFailed>
  /** does it answer a statement, within `clickhousePingMillis`? */
  readonly ping: Effect.Effect<boolean>
}

/** The embedded ClickHouse is away for half a second when its process is started again: a read waits that long. */
const awaitRestart = { schedule: Schedule.exponential(100), times: 3, while: isLostConnection }

const identifier = (name: string): string => `\`${name.replace(/[\\`]/g, (sign) => `\\${sign}`)}\``

const literal = (text: string): string => `'${text.replace(/[\\']/g, (sign) => `\\${sign}`)}'`

/** `INSERT INTO t (a, b) FORMAT RowBinary`, or, on a condition, by way of the table function that stands for the body. */
const insertStatement = (
  table: string,
  columns: ReadonlyArray<string>,
  { condition, format }: InsertOptions
): string => {
  const list = columns.map(identifier).join(", ")
  const into = `INSERT INTO ${identifier(table)} (${list})`
  if (condition === undefined) return `${into} FORMAT ${format}`
  const typed = columns.map((name, index) => `${identifier(name)} ${condition.types[index]}`).join(", ")
  return `${into} SELECT ${list} FROM input(${literal(typed)}) WHERE ${condition.sql} FORMAT ${format}`
}

const seconds = (millis: number): number => millis / 1_000

const make = (clients: ClickHouseClients, limits: Limits): ClickHouseService => {
  const query: ClickHouseService["query"] = <A>(sql: string, parameters = {}, settings: Settings = {}) =>
    clients
      .attempt<ReadonlyArray<A>>(limits.clickhouseQueryMillis + 1_000, async (client, signal) => {
        const answer = await client.query({
          query: sql,
          format: "JSONEachRow",
          query_params: parameters,
          clickhouse_settings: { max_execution_time: seconds(limits.clickhouseQueryMillis), ...settings },
          abort_signal: signal
        })
        return answer.json<A>()
      })
      .pipe(Effect.retry(awaitRestart))

  const insert: ClickHouseService["insert"] = (table, columns, body, options) =>
    clients.attempt(limits.clickhouseInsertMillis, async (client, signal) => {
      const answer = await client.exec({
        query: insertStatement(table, columns, options),
        values: Readable.from(body instanceof Uint8Array ? [body] : body, { objectMode: false }),
        clickhouse_settings: {
          max_execution_time: seconds(limits.clickhouseInsertMillis),
          // The limit of partitions is left to the callers that insert: they cut their batches.
          max_partitions_per_insert_block: "0",
          // A line of JSON may have more than the table: calls come as their log has them.
          input_format_skip_unknown_fields: 1,
          ...(options.token === undefined ? {} : { insert_deduplication_token: options.token })
        },
        abort_signal: signal
      })
      // An error that comes after the status line is in the answer's body, which is empty otherwise.
      for await (const chunk of answer.stream) {
        if (String(chunk).includes("DB::Exception")) throw new Error(String(chunk))
      }
    })

  const command: ClickHouseService["command"] = (sql, parameters = {}, settings = {}) =>
    clients.attempt(limits.clickhouseCommandMillis, async (client, signal) => {
      await client.command({
        query: sql,
        query_params: parameters,
        clickhouse_settings: { max_execution_time: seconds(limits.clickhouseCommandMillis), ...settings },
        abort_signal: signal
      })
    })

  const checkInsert: ClickHouseService["checkInsert"] = (table, columns) => {
    const [name, list] = [identifier(table), columns.map(identifier).join(", ")]
    // An insert of an empty body is answered before the table is looked at.
    return command(`INSERT INTO ${name} (${list}) SELECT ${list} FROM ${name} WHERE false`)
  }

  const ping = clients
    .attempt(limits.clickhousePingMillis, async (client, signal) => {
      const answer = await client.query({ query: "SELECT 1", format: "JSONEachRow", abort_signal: signal })
      await answer.json()
    })
    .pipe(
      Effect.as(true),
      Effect.orElseSucceed(() => false)
    )
  return { query, insert, checkInsert, command, ping }
}

export class ClickHouse extends Context.Service<ClickHouse, ClickHouseService>()(
  "signalbox/infra/ClickHouse"
) {
  static readonly layer: Layer.Layer<ClickHouse, never, ClickHouseEndpoint | AppConfig> = Layer.effect(
    ClickHouse,
    Effect.gen(function* () {
      const { current } = yield* ClickHouseEndpoint
      const { limits } = yield* AppConfig
      const clients = yield* Effect.acquireRelease(
        Effect.sync(() => new ClickHouseClients(current, limits)),
        (open) => Effect.promise(() => open.close())
      )
      return make(clients, limits)
    })
  )
}
