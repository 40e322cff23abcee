import { ManagedRuntime } from "effect"
import { TestStores } from "./TestStores.ts"
import { startProxy, type TcpProxy } from "./TcpProxy.ts"

/** Databases of a test's own on the servers of this test run, reached through wires that the test can cut. */
export interface ServerStores {
  readonly postgres: TcpProxy
  readonly clickhouse: TcpProxy
  /** DATABASE_URL and CLICKHOUSE_URL of a server, through the wires */
  readonly env: Readonly<Record<"DATABASE_URL" | "CLICKHOUSE_URL", string>>
  /** past the wire */
  readonly clickhouseUrl: string
  readonly close: () => Promise<void>
}

/** A wire to the store of a URL, and the URL through it. */
export const wireTo = async (url: string, defaultPort: number) => {
  const direct = new URL(url)
  const wire = await startProxy({ host: direct.hostname, port: Number(direct.port || defaultPort) })
  const through = new URL(url)
  through.hostname = "127.0.0.1"
  through.port = String(wire.port)
  return { wire, url: through.href }
}

export const openStores = async (): Promise<ServerStores> => {
  const runtime = ManagedRuntime.make(TestStores.layerEmpty)
  const { clickhouseUrl, databaseUrl } = await runtime.runPromise(TestStores)
  const postgres = await wireTo(databaseUrl, 5432)
  const clickhouse = await wireTo(clickhouseUrl, 8123)
  return {
    postgres: postgres.wire,
    clickhouse: clickhouse.wire,
    env: { DATABASE_URL: postgres.url, CLICKHOUSE_URL: clickhouse.url },
    clickhouseUrl,
    close: async () => {
      await Promise.all([postgres.wire.close(), clickhouse.wire.close()])
      await runtime.dispose()
    }
  }
}
