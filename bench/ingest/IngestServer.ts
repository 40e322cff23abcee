import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createClient, type ClickHouseClient } from "@clickhouse/client"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { descendants, residentMiB } from "#bench/harness/ProcessUse.ts"
import type { Stage, StageContext } from "#bench/harness/Suite.ts"
import { createSite, type TestSite } from "#test/integration/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/integration/ServerProcess.ts"

/** The real server with its embedded stores, in processes of their own. */
export interface IngestServer {
  readonly port: number
  readonly pid: number
  /** of the ClickHouse child */
  readonly storePid: number
  readonly site: TestSite
  /** past all of the server's code; a query flushes nothing */
  readonly clickhouse: ClickHouseClient
  /** another site, whose events are few and so found at once */
  readonly markers: TestSite
}

export const domain = "example.com"

export interface IngestServerOptions {
  readonly directory: string
  /**
   * "apart": the server alone on its core, as the raw server is, and its stores on the client's. "shared": nobody is
   * moved, all share both cores.
   */
  readonly cores: "apart" | "shared"
}

const startIn = (directory: string): Promise<ServerProcess> =>
  startServer({ dataDir: join(directory, "data"), env: { TRUST_PROXY: "1" } })

/** For all cases of a quick run in one process: starting a server takes longer than they do. */
let shared: ServerProcess | undefined

export const stage = async ({ directory, quick }: StageContext): Promise<Stage<undefined>> => {
  if (quick) shared = await startIn(directory)
  const leave = async (): Promise<void> => {
    await shared?.dispose()
    shared = undefined
  }
  return { given: undefined, leave }
}

/** Lends a server on which nobody but the caller has the sites. */
export const withIngestServer = async <A>(
  { cores, directory }: IngestServerOptions,
  use: (server: IngestServer) => Promise<A>
): Promise<A> => {
  const lent = shared
  const server = lent ?? (await startIn(directory))
  const { dataDir } = server
  const clickhouse = createClient(
    JSON.parse(readFileSync(join(dataDir, "clickhouse.json"), "utf8")) as { url: string }
  )
  try {
    const { pid: storePid } = JSON.parse(readFileSync(join(dataDir, "clickhouse.json"), "utf8")) as {
      pid: number
    }
    if (cores === "apart") {
      for (const pid of descendants(server.pid())) move(pid, clientCore)
      move(server.pid(), serverCore)
    }
    return await use({
      port: Number(new URL(server.url).port),
      pid: server.pid(),
      storePid,
      site: await createSite(server, domain),
      markers: await createSite(server, domain),
      clickhouse
    })
  } finally {
    await clickhouse.close()
    if (lent === undefined) await server.dispose()
  }
}

/** Looks at the memory of server and ClickHouse four times a second; answers the most that both had at one time. */
export const watchMemory = ({ pid, storePid }: IngestServer): (() => number) => {
  let peakMiB = 0
  const look = (): void => {
    peakMiB = Math.max(peakMiB, residentMiB(pid) + residentMiB(storePid))
  }
  const timer = setInterval(look, 250)
  return () => {
    clearInterval(timer)
    look()
    return peakMiB
  }
}

/** Rows of the site, and how many different events they are. */
export const storedEvents = async (
  { clickhouse }: IngestServer,
  site: TestSite
): Promise<{ readonly rows: number; readonly events: number }> => {
  const answer = await clickhouse.query({
    query:
      "SELECT toUInt32(count()) AS rows, toUInt32(uniqExact(pv)) AS events FROM events WHERE site = {site:String}",
    query_params: { site: site.id },
    format: "JSONEachRow"
  })
  const [found] = await answer.json<{ rows: number; events: number }>()
  return found ?? { rows: 0, events: 0 }
}
