import { join } from "node:path"
import { closedLoop } from "#bench/harness/ClosedLoop.ts"
import { answered, load as loadOf, type RequestModule, startLoad } from "#bench/harness/HttpLoad.ts"
import { type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import { domain, type Given, type IngestServer, withIngestServer } from "./IngestServer.ts"
import { startRaw } from "./RawServer.ts"

/** Beacons of so many visitors, made in the load's process. */
export const beacons = (site: string, visitors: number, seed: number): RequestModule => ({
  file: join(import.meta.dirname, "Beacons.ts"),
  options: { site, domain, visitors, seed }
})

export const visitorsOf = (context: CaseContext): number => sized(context, { tiny: 500, full: 100_000 })

export const connectionsOf = (context: CaseContext): number => sized(context, { tiny: 8, full: 1024 })

interface Target {
  readonly port: number
  readonly pid: number
  readonly site: string
}

/** Share of the server's own highest rate at which latency is measured. */
const steadyShare = 0.8

/** First as much as it takes, one event a request on each connection; then 80 % of that, whether or not it answers. */
const measure = async ({ pid, port, site }: Target, context: CaseContext): Promise<Measurement> => {
  const common = { port, connections: connectionsOf(context) }
  const load = await startLoad({ ...common, requests: beacons(site, visitorsOf(context), 1) })
  const most = await closedLoop(context, { pid, load, status: "202" })
  await load.stop()
  // A comparison looks at no latency.
  if (context.parts > 1) return most
  const warmUpMillis = sized(context, { tiny: 50, full: 1_000 })
  const steady = await loadOf({
    ...common,
    requests: beacons(site, visitorsOf(context), 3),
    durationMillis: context.windowMillis + warmUpMillis,
    ratePerSecond: ((most.work * 1000) / most.elapsedMillis) * steadyShare,
    warmUpMillis
  })
  const { p50Millis, p99Millis, maxMillis } = answered(steady, "202").latency
  return {
    ...most,
    latency: { p50Millis, p99Millis, maxMillis },
    figures: { ...most.figures, "steady/s": steady.requestsPerSecond }
  }
}

export const rawAccepts = async (context: CaseContext): Promise<Measurement> => {
  const server = await startRaw()
  try {
    return await measure({ ...server, site: "st_of_nobody" }, context)
  } finally {
    await server.stop()
  }
}

/** Stops the ClickHouse child during the work: events accepted meanwhile stay in the log. */
const whileHeld = async <A>({ storePid }: IngestServer, work: () => Promise<A>): Promise<A> => {
  process.kill(storePid, "SIGSTOP")
  try {
    return await work()
  } finally {
    process.kill(storePid, "SIGCONT")
  }
}

/**
 * The work of ingest for an event up to its 202: parse, validate, tell bots, hash, and be on disk. ClickHouse is held,
 * so that its later work takes nothing of the client's core; `drains: true` leaves it running.
 */
export const durableAccepts =
  ({ drains }: { readonly drains: boolean }) =>
  (context: CaseContext<Given>): Promise<Measurement> =>
    withIngestServer(context, "apart", (server) => {
      const work = (): Promise<Measurement> => measure({ ...server, site: server.site.id }, context)
      return drains ? work() : whileHeld(server, work)
    })

const giveUpMillis = 300_000

/** Accepting as above where so many people have come within the five minutes before, each of them on one page or more. */
export const acceptsBeside =
  (people: number) =>
  (context: CaseContext<Given>): Promise<Measurement> =>
    withIngestServer(context, "apart", (server) =>
      whileHeld(server, async () => {
        const count = sized(context, { tiny: people / 1_000, full: people })
        const options = {
          port: server.port,
          connections: connectionsOf(context),
          requests: beacons(server.site.id, count, 1)
        }
        answered(await loadOf({ ...options, count, durationMillis: giveUpMillis }), "202")
        const load = await startLoad(options)
        const measured = await closedLoop(context, { pid: server.pid, load, status: "202" })
        await load.stop()
        return measured
      })
    )
