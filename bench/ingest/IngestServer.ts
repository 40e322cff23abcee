import { readFileSync } from "node:fs"
import { join } from "node:path"
import { createClient, type ClickHouseClient } from "@clickhouse/client"
import { clientCore, move, serverCore } from "#bench/harness/Cores.ts"
import { probed } from "#bench/harness/Meter.ts"
import { descendants, residentMiB } from "#bench/harness/ProcessUse.ts"
import type { CaseContext, Stage, StageContext } from "#bench/harness/Suite.ts"
import { ask, createSite, type Reachable, type TestSite } from "#test/harness/ApiClient.ts"
import { type ServerProcess, startServer } from "#test/harness/ServerProcess.ts"

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

/**
 * "apart": the server alone on its core, as the raw server is, and its stores on the client's. "shared": all share both
 * cores.
 */
export type Placement = "apart" | "shared"

/** A server that is there already: starting one takes longer than a case of a tiny or quick run. */
export interface Given {
  readonly server: ServerAddress | undefined
}

/** The address and keys of a running server, for other processes. */
interface ServerAddress {
  readonly url: string
  readonly key: string
  readonly pid: number
  readonly dataDir: string
}

const startIn = (directory: string): Promise<ServerProcess> =>
  startServer({ dataDir: join(directory, "data"), env: { TRUST_PROXY: "1", ...probed() } })

const addressOf = ({ adminKey, dataDir, pid, url }: ServerProcess): ServerAddress => ({
  url,
  key: adminKey(),
  pid: pid(),
  dataDir
})

/** One server for all cases, except in a full run, whose cases each have a fresh one. */
export const stage = async ({ cases, directory, kept, size }: StageContext): Promise<Stage<Given>> => {
  const isNeeded = size !== "full" && cases.some((name) => !name.startsWith("raw"))
  const server = isNeeded ? await startIn(kept ?? directory) : undefined
  return {
    given: { server: server === undefined ? undefined : addressOf(server) },
    leave: async () => server?.dispose()
  }
}

const place = (pid: number, placement: Placement): void => {
  const children = descendants(pid)
  for (const one of children) move(one, ...(placement === "apart" ? [clientCore] : [clientCore, serverCore]))
  move(pid, ...(placement === "apart" ? [serverCore] : [clientCore, serverCore]))
}

/** Lends a server with two sites that only the caller uses. */
export const withIngestServer = async <A>(
  { directory, given }: CaseContext<Given>,
  placement: Placement,
  use: (server: IngestServer) => Promise<A>
): Promise<A> => {
  const own = given.server === undefined ? await startIn(directory) : undefined
  const { dataDir, key, pid, url } = given.server ?? addressOf(own as ServerProcess)
  const store = JSON.parse(readFileSync(join(dataDir, "clickhouse.json"), "utf8")) as {
    readonly url: string
    readonly pid: number
  }
  const clickhouse = createClient({ url: store.url })
  try {
    place(pid, placement)
    const api = { url, adminKey: () => key }
    return await use({
      port: Number(new URL(url).port),
      pid,
      storePid: store.pid,
      site: await createSite(api, domain),
      markers: await createSite(api, domain),
      clickhouse
    })
  } finally {
    await clickhouse.close()
    if (own === undefined) await caughtUp({ url, adminKey: () => key })
    else await own.dispose()
  }
}

const catchUpMillis = 120_000

/** Waits until everything accepted is stored: the next case is not to pay for it. */
const caughtUp = async (api: Reachable): Promise<void> => {
  const site = await createSite(api, domain)
  const deadline = performance.now() + catchUpMillis
  // A read is answered once what was accepted before it is stored, and refused with 503 while that takes long.
  while ((await ask(api, "GET", `/api/v1/sites/${site.id}/stats`)).status !== 200) {
    if (performance.now() > deadline) throw new Error("The accepted events do not come through")
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
