import { createClient } from "@clickhouse/client"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { ClickHouseUnavailable, type EmbeddedClickHouseFailed } from "./ClickHouseFailed.ts"
import { start } from "./EmbeddedClickHouse.ts"

export interface Endpoint {
  /** `http://host:port`, without credentials */
  readonly url: string
  readonly username: string
  readonly password: string
  readonly database: string
}

/** `https://user:password@host:8443/database`; user and database are `default` when not named. */
export const parseEndpoint = (text: string): Endpoint => {
  const url = new URL(text)
  return {
    url: url.origin,
    username: decodeURIComponent(url.username) || "default",
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || "default"
  }
}

/** A server that is given may still be starting, and may not have the database yet. */
const prepare = (endpoint: Endpoint, limits: Limits): Effect.Effect<void, ClickHouseUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      const { database, ...server } = endpoint
      const client = createClient({ ...server, log: { level: 127 } })
      const name = { name: database }
      try {
        const query = "SELECT name FROM system.databases WHERE name = {name:String}"
        const found = await client.query({ query, query_params: name, format: "JSONEachRow" })
        if ((await found.json()).length > 0) return
        await client.command({ query: "CREATE DATABASE IF NOT EXISTS {name:Identifier}", query_params: name })
      } finally {
        await client.close()
      }
    },
    catch: (cause) =>
      new ClickHouseUnavailable({ problem: cause instanceof Error ? cause.message : "", cause })
  }).pipe(
    Effect.retry({ schedule: Schedule.spaced(200), times: Math.ceil(limits.clickhouseStartMillis / 200) })
  )

/** Where ClickHouse is. The embedded one may move to another port when it is started again. */
export class ClickHouseEndpoint extends Context.Service<
  ClickHouseEndpoint,
  {
    readonly current: () => Endpoint
    /** how often the embedded ClickHouse has been started again; 0 for a server */
    readonly restarts: () => number
    /** of the embedded ClickHouse; undefined while it is down, and for a server */
    readonly pid: () => number | undefined
  }
>()("signalbox/infra/ClickHouseEndpoint") {
  /** The server of `CLICKHOUSE_URL`, else an embedded one that runs as long as the layer lives. */
  static readonly layer: Layer.Layer<
    ClickHouseEndpoint,
    EmbeddedClickHouseFailed | ClickHouseUnavailable,
    AppConfig
  > = Layer.effect(
    ClickHouseEndpoint,
    Effect.gen(function* () {
      const { clickhouseUrl, dataDir, limits } = yield* AppConfig
      if (clickhouseUrl === undefined) return yield* start(dataDir, limits)
      const endpoint = parseEndpoint(Redacted.value(clickhouseUrl))
      yield* prepare(endpoint, limits)
      return { current: () => endpoint, restarts: () => 0, pid: () => undefined }
    })
  )
}
