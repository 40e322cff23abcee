import { join } from "node:path"
import { load, type LoadOptions, type LoadResult, type RequestModule } from "#bench/harness/HttpLoad.ts"
import { cpuMillis } from "#bench/harness/ProcessUse.ts"
import type { CaseContext, Measurement } from "#bench/harness/Suite.ts"
import { domain, type IngestServer, withIngestServer } from "./IngestServer.ts"
import { startRaw } from "./RawServer.ts"

/** Beacons of so many visitors, made in the load's process. */
export const beacons = (site: string, visitors: number, seed: number): RequestModule => ({
  file: join(import.meta.dirname, "Beacons.ts"),
  options: { site, domain, visitors, seed }
})

export const visitorsOf = ({ quick }: CaseContext): number => (quick ? 500 : 100_000)

export const connectionsOf = ({ quick }: CaseContext): number => (quick ? 8 : 1024)

/** Runs a load to which every answer has to be 202. */
export const loadAccepted = async (options: LoadOptions): Promise<LoadResult> => {
  const result = await load(options)
  if (result.errors > 0 || (result.statuses["202"] ?? 0) !== result.requests) {
    throw new Error(`Unexpected answers: ${JSON.stringify(result.statuses)}, ${result.errors} errors`)
  }
  return result
}

interface Target {
  readonly port: number
  readonly pid: number
  readonly site: string
}

/** Share of the server's own highest rate at which latency is measured. */
const steadyShare = 0.8

/** First as much as it takes, one event a request on each connection; then 80 % of that, whether or not it answers. */
const measure = async (target: Target, context: CaseContext): Promise<Measurement> => {
  const { port, pid, site } = target
  const common = { port, connections: connectionsOf(context) }
  const requests = (seed: number): RequestModule => beacons(site, visitorsOf(context), seed)
  await loadAccepted({ ...common, requests: requests(1), durationMillis: context.quick ? 100 : 3000 })
  const before = cpuMillis(pid)
  const most = await loadAccepted({
    ...common,
    requests: requests(2),
    durationMillis: context.quick ? 200 : 4000
  })
  const used = cpuMillis(pid) - before
  const steady = await loadAccepted({
    ...common,
    requests: requests(3),
    durationMillis: context.quick ? 200 : 5000,
    ratePerSecond: most.requestsPerSecond * steadyShare,
    warmUpMillis: context.quick ? 50 : 1000
  })
  const { p50Millis, p99Millis, maxMillis } = steady.latency
  return {
    work: most.requests,
    elapsedMillis: most.elapsedMillis,
    ...(Number.isNaN(used) ? {} : { cpuMillis: used }),
    latency: { p50Millis, p99Millis, maxMillis },
    figures: { "server core busy %": (used / most.elapsedMillis) * 100, "steady/s": steady.requestsPerSecond }
  }
}

export const rawAccepts = async (context: CaseContext): Promise<Measurement> => {
  const server = await startRaw()
  try {
    return await measure({ ...server, site: "st_of_nobody" }, context)
  } finally {
    server.stop()
  }
}

/** Stops the ClickHouse child for as long as the work takes: what is accepted meanwhile stays in the log. */
const whileHeld = async <A>({ storePid }: IngestServer, work: () => Promise<A>): Promise<A> => {
  process.kill(storePid, "SIGSTOP")
  try {
    return await work()
  } finally {
    process.kill(storePid, "SIGCONT")
  }
}

/**
 * What ingest does for an event up to its 202: parse, validate, tell bots, hash, and be on disk. ClickHouse is held, so
 * that its work, which may come at any time later, takes nothing of the client's core; `drains: true` leaves it running.
 */
export const durableAccepts =
  ({ drains }: { readonly drains: boolean }) =>
  (context: CaseContext): Promise<Measurement> =>
    withIngestServer({ directory: context.directory, cores: "apart" }, (server) => {
      const work = (): Promise<Measurement> => measure({ ...server, site: server.site.id }, context)
      return drains ? work() : whileHeld(server, work)
    })
