import { createClient } from "@clickhouse/client"
import { Context, Effect, Layer, Redacted } from "effect"
import { AppConfig } from "#src/Config.ts"
import {
  type ClickHouseFailed,
  type ClickHouseUnavailable,
  type EmbeddedClickHouseFailed,
  failureOf
} from "./ClickHouseFailed.ts"
import { type Endpoint, start } from "./EmbeddedClickHouse.ts"

/** `https://user:password@host:8443/database`; user and database are `default` when not named. */
const parseEndpoint = (text: string): Endpoint => {
  const url = new URL(text)
  return {
    url: url.origin,
    username: decodeURIComponent(url.username) || "default",
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || "default"
  }
}

/** A server that is given may not have the database yet. */
const makeDatabaseOf = ({
  database,
  ...server
}: Endpoint): Effect.Effect<void, ClickHouseUnavailable | ClickHouseFailed> =>
  Effect.acquireUseRelease(
    Effect.sync(() => createClient({ ...server, request_timeout: connectMillis, log: { level: 127 } })),
    (client) =>
      Effect.tryPromise({
        try: async () => {
          const name = { name: database }
          const query = "SELECT name FROM system.databases WHERE name = {name:String}"
          const found = await client.query({ query, query_params: name, format: "JSONEachRow" })
          if ((await found.json()).length > 0) return
          await client.command({
            query: "CREATE DATABASE IF NOT EXISTS {name:Identifier}",
            query_params: name
          })
        },
        catch: failureOf
      }),
    (client) => Effect.promise(() => client.close())
  )

/** A server that has not answered by then is away. */
const connectMillis = 5_000

/** The address of ClickHouse. The embedded one may move to another port when it is started again. */
export class ClickHouseEndpoint extends Context.Service<
  ClickHouseEndpoint,
  {
    readonly current: () => Endpoint
    /** how often the embedded ClickHouse has been started again; 0 for a server */
    readonly restarts: () => number
    /** of the embedded ClickHouse; undefined while it is down, and for a server */
    readonly pid: () => number | undefined
    /** the fault of the embedded ClickHouse's directory at the start, and the possible losses */
    readonly damage?: string | undefined
    /** makes the database of the endpoint where it is missing */
    readonly makeDatabase: Effect.Effect<void, ClickHouseUnavailable | ClickHouseFailed>
  }
>()("signalbox/infra/ClickHouseEndpoint") {
  /** The server of `CLICKHOUSE_URL`, else an embedded one that runs as long as the layer lives. */
  static readonly layer: Layer.Layer<ClickHouseEndpoint, EmbeddedClickHouseFailed, AppConfig> = Layer.effect(
    ClickHouseEndpoint,
    Effect.gen(function* () {
      const { clickhouseUrl, dataDir, limits } = yield* AppConfig
      // The embedded one makes its database itself.
      if (clickhouseUrl === undefined)
        return { ...(yield* start(dataDir, limits)), makeDatabase: Effect.void }
      const endpoint = parseEndpoint(Redacted.value(clickhouseUrl))
      return {
        current: () => endpoint,
        restarts: () => 0,
        pid: () => undefined,
        makeDatabase: makeDatabaseOf(endpoint)
      }
    })
  )
}
