import { ClickHouseError, type ClickHouseClient, createClient } from "@clickhouse/client"
import { Effect } from "effect"
import type { Limits } from "#src/Limits.ts"
import type { Endpoint } from "./ClickHouseEndpoint.ts"
import { ClickHouseFailed, ClickHouseUnavailable } from "./ClickHouseFailed.ts"

/** Codes of system.errors that speak of now (memory, disk, load, time), not of the statement. */
const passing = new Set([
  74, 75, 76, 159, 160, 164, 198, 202, 203, 209, 210, 236, 241, 242, 243, 252, 279, 394, 425, 999, 1001
])

const failure = (error: unknown): ClickHouseUnavailable | ClickHouseFailed => {
  const problem = error instanceof Error ? error.message : String(error)
  if (!(error instanceof ClickHouseError)) return new ClickHouseUnavailable({ problem, cause: error })
  const code = Number(error.code)
  return passing.has(code)
    ? new ClickHouseUnavailable({ problem: `${problem} (${code} ${error.type ?? ""})`, cause: error })
    : new ClickHouseFailed({ code, name: error.type ?? "", problem })
}

/** Was the connection lost, rather than the statement answered with an error? */
export const isLostConnection = (error: ClickHouseUnavailable | ClickHouseFailed): boolean =>
  error._tag === "ClickHouseUnavailable" && !(error.cause instanceof ClickHouseError)

const isLoopback = (url: string): boolean => /^(127\.0\.0\.1|localhost|\[::1\])$/.test(new URL(url).hostname)

/** The stock client for the endpoint of the moment: a new one when the embedded ClickHouse has moved. */
export class ClickHouseClients {
  private readonly endpoint: () => Endpoint
  private readonly limits: Limits
  private url = ""
  private client: ClickHouseClient | undefined

  constructor(endpoint: () => Endpoint, limits: Limits) {
    this.endpoint = endpoint
    this.limits = limits
  }

  /** Runs a request, at most so long; interruption aborts it. */
  attempt<A>(
    millis: number,
    run: (client: ClickHouseClient, signal: AbortSignal) => Promise<A>
  ): Effect.Effect<A, ClickHouseUnavailable | ClickHouseFailed> {
    return Effect.tryPromise({ try: (signal) => run(this.get(), signal), catch: failure }).pipe(
      Effect.timeoutOrElse({
        duration: millis,
        orElse: () =>
          Effect.fail(new ClickHouseUnavailable({ problem: `no answer in ${millis} ms`, cause: undefined }))
      })
    )
  }

  close(): Promise<void> {
    const { client } = this
    this.client = undefined
    return client?.close() ?? Promise.resolve()
  }

  private get(): ClickHouseClient {
    const endpoint = this.endpoint()
    if (this.client !== undefined && this.url === endpoint.url) return this.client
    void this.close()
    this.url = endpoint.url
    this.client = createClient({
      ...endpoint,
      application: "signalbox",
      max_open_connections: this.limits.clickhouseConnections,
      request_timeout: this.limits.clickhouseCommandMillis,
      compression: { request: false, response: !isLoopback(endpoint.url) },
      log: { level: 127 },
      clickhouse_settings: { async_insert: 0, session_timezone: "UTC" }
    })
    return this.client
  }
}
