import { ManagedRuntime } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { type SandboxClient, startSandbox } from "#test/sandbox/SandboxClient.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** The answer of the ledger's check; amounts are pico-USD as decimal text. */
export interface Verdict {
  readonly toppedUp: string
  readonly charged: string
  readonly loss: string
  readonly leased: string
  readonly differences: ReadonlyArray<unknown>
}

/** Server processes that share one Postgres and one upstream. */
export interface RouterProcesses {
  readonly servers: ReadonlyArray<ServerProcess>
  readonly sandbox: SandboxClient
  /** the charge for each call, in pico-USD, by its id */
  readonly charges: () => Promise<ReadonlyMap<string, bigint>>
  /** tokens drawn from a user's allowance in each window of that name, the oldest first */
  readonly allowanceUsed: (userId: string, window: string) => Promise<ReadonlyArray<number>>
  /** from now on the ledger's clock goes on from this instant */
  readonly setClock: (instant: Date) => Promise<void>
  /** as `signalbox ledger verify` sees it */
  readonly verify: () => Promise<Verdict>
  readonly close: () => Promise<void>
}

export const startRouters = async (count: number): Promise<RouterProcesses> => {
  const runtime = ManagedRuntime.make(TestStores.layer)
  const { clickhouseUrl, databaseUrl } = await runtime.runPromise(TestStores)
  const sql = await runtime.runPromise(SqlClient)
  const sandbox = await startSandbox()
  const env = {
    DATABASE_URL: databaseUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    UPSTREAM_URL: sandbox.url,
    ROOMS: "llm"
  }
  const servers: Array<ServerProcess> = []
  // One after the other: the first boot makes the administrator.
  for (let at = 0; at < count; at++) servers.push(await startServer({ env }))
  return {
    servers,
    sandbox,
    charges: async () => {
      const rows = await runtime.runPromise(
        sql<{ request_id: string; amount: string }>`SELECT request_id, amount::text AS amount FROM entries
          WHERE kind = 'charge'`
      )
      return new Map(rows.map(({ amount, request_id }) => [request_id, BigInt(amount)]))
    },
    allowanceUsed: async (userId, window) => {
      const rows = await runtime.runPromise(
        sql<{ settled: string }>`SELECT l.settled::text AS settled FROM limits l
          JOIN subscriptions s ON l.id = 'allowance:' || s.id || ':' || ${window}
          WHERE s.user_id = ${userId} ORDER BY l.window_start`
      )
      return rows.map(({ settled }) => Number(settled))
    },
    setClock: async (instant) => {
      const offset = `${instant.getTime() - Date.now()} milliseconds`
      await runtime.runPromise(
        sql.unsafe(`CREATE OR REPLACE FUNCTION ledger_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
          SELECT clock_timestamp() + interval '${offset}' $$`)
      )
    },
    verify: async () => {
      const [first] = servers
      if (first === undefined) throw new Error("no server")
      const { body, status } = await ask(first, "GET", "/api/v1/admin/ledger/verify")
      if (status !== 200) throw new Error(`no verdict: ${status} ${JSON.stringify(body)}`)
      return body as Verdict
    },
    close: async () => {
      for (const server of servers) await server.dispose()
      await sandbox.close()
      await runtime.dispose()
    }
  }
}
