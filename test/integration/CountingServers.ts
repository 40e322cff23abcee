import { ManagedRuntime } from "effect"
import { TestStores } from "#test/harness/TestStores.ts"
import { type Answer, ask, textAt } from "#test/harness/ApiClient.ts"
import { type Balancer, startBalancer } from "#test/harness/Balancer.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { wireTo } from "#test/harness/ServerStores.ts"
import type { TcpProxy } from "#test/harness/TcpProxy.ts"
import { until } from "#test/harness/Eventually.ts"

/** Two servers on one Postgres and one ClickHouse, each with a wire of its own to Postgres, behind a balancer. */
export interface CountingServers {
  readonly servers: readonly [ServerProcess, ServerProcess]
  readonly wires: readonly [TcpProxy, TcpProxy]
  readonly balancer: Balancer
  /** asks the server that the balancer picks */
  readonly both: { readonly url: string; readonly adminKey: () => string }
  readonly clickhouseUrl: string
  readonly close: () => Promise<void>
}

export const startCountingServers = async (): Promise<CountingServers> => {
  const runtime = ManagedRuntime.make(TestStores.layerEmpty)
  const { clickhouseUrl, databaseUrl } = await runtime.runPromise(TestStores)
  const closers: Array<() => Promise<void>> = [() => runtime.dispose()]
  const start = async (): Promise<readonly [ServerProcess, TcpProxy]> => {
    const { url, wire } = await wireTo(databaseUrl, 5432)
    closers.push(() => wire.close())
    const env = { DATABASE_URL: url, CLICKHOUSE_URL: clickhouseUrl, TRUST_PROXY: "1" }
    const server = await startServer({ env })
    closers.push(() => server.dispose())
    return [server, wire]
  }
  const close = async (): Promise<void> => {
    for (const one of closers.toReversed()) await one()
  }
  try {
    const [first, firstWire] = await start()
    const [second, secondWire] = await start()
    const balancer = await startBalancer([first.url, second.url])
    closers.push(() => balancer.close())
    // The first boot made the administrator; the second server has no key file of its own.
    const adminKey = first.adminKey()
    return {
      servers: [first, second],
      wires: [firstWire, secondWire],
      balancer,
      both: { url: balancer.url, adminKey: () => adminKey },
      clickhouseUrl,
      close
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The component `analytics` of a server's `/readyz`. */
export const analyticsOf = async (server: ServerProcess): Promise<string> => {
  const ready = await ask(server, "GET", "/readyz", { key: "" })
  if (ready.status !== 200) return String(ready.status)
  return textAt(ready, "components", "analytics", "status")
}

export const counts = (server: ServerProcess, patienceMillis = 60_000): Promise<void> =>
  until(
    "it counts",
    async () => {
      const status = await analyticsOf(server)
      return status === "up" ? undefined : `${status}: ${server.output().slice(-2_000)}`
    },
    patienceMillis
  )

export const standsBy = (server: ServerProcess): Promise<void> =>
  until("it stands by", async () => {
    const status = await analyticsOf(server)
    return status === "standby" ? undefined : status
  })

/** Whether it is the one refusal of a process that does not count. */
export const isStandby = ({ body, headers, status }: Answer): boolean =>
  status === 503 &&
  Number(headers.get("retry-after")) >= 1 &&
  (body as { code?: string } | undefined)?.code === "standby" &&
  (body as { error: string }).error.startsWith("standby: ")
