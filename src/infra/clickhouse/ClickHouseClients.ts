import { type ClickHouseClient, createClient } from "@clickhouse/client"
import { Effect } from "effect"
import type { Limits } from "#src/Limits.ts"
import type { Endpoint } from "./EmbeddedClickHouse.ts"
import { type ClickHouseFailed, ClickHouseUnavailable, failureOf } from "./ClickHouseFailed.ts"

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

  /** Runs a request, at most so long, and no longer than ClickHouse gives signs of life; interruption aborts it. */
  attempt<A>(
    millis: number,
    run: (client: ClickHouseClient, signal: AbortSignal) => Promise<A>
  ): Effect.Effect<A, ClickHouseUnavailable | ClickHouseFailed> {
    return Effect.tryPromise({ try: (signal) => run(this.get(), signal), catch: failureOf }).pipe(
      Effect.raceFirst(this.silence),
      Effect.timeoutOrElse({
        duration: millis,
        orElse: () =>
          Effect.fail(new ClickHouseUnavailable({ problem: `no answer in ${millis} ms`, cause: undefined }))
      })
    )
  }

  /**
   * Fails when ClickHouse no longer answers anything: behind a dead connection no query waits for its whole time. Asked
   * over connections of its own, as the client's may all be waiting.
   */
  private readonly silence: Effect.Effect<never, ClickHouseUnavailable> = Effect.suspend(() => {
    const millis = this.limits.clickhouseSilenceMillis
    const askForLife = Effect.tryPromise({
      try: async () => {
        const answer = await fetch(new URL("/ping", this.endpoint().url), {
          signal: AbortSignal.timeout(millis)
        })
        await answer.arrayBuffer()
      },
      catch: (cause) => new ClickHouseUnavailable({ problem: "it gives no sign of life", cause })
    })
    return Effect.forever(Effect.andThen(Effect.sleep(millis), askForLife))
  })

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
