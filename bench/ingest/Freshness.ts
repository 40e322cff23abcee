import { setTimeout as sleep } from "node:timers/promises"
import { answered, load } from "#bench/harness/HttpLoad.ts"
import { type CaseContext, latencyOf, type Measurement, sized } from "#bench/harness/Suite.ts"
import { beacons, connectionsOf, visitorsOf } from "./AcceptRate.ts"
import { domain, type Given, type IngestServer, withIngestServer } from "./IngestServer.ts"
import { userAgents } from "#bench/traffic/UserAgents.ts"

/** Sends one event with a mark of its own; resolves when it is answered 202. */
const sendMarked = async ({ markers, port }: IngestServer, mark: string): Promise<void> => {
  const answer = await fetch(`http://127.0.0.1:${port}/api/event`, {
    method: "POST",
    headers: { "user-agent": userAgents[0] ?? "", "x-forwarded-for": "198.51.100.7" },
    body: JSON.stringify({ s: markers.id, k: "pageview", u: `https://${domain}/marked`, pv: mark })
  })
  await answer.arrayBuffer()
  if (answer.status !== 202) throw new Error(`A marked event was answered ${answer.status}`)
}

const visibleMarks = async ({ clickhouse, markers }: IngestServer): Promise<ReadonlyArray<string>> => {
  const answer = await clickhouse.query({
    query: "SELECT pv FROM events WHERE site = {site:String}",
    query_params: { site: markers.id },
    format: "JSONEachRow"
  })
  return (await answer.json<{ pv: string }>()).map(({ pv }) => pv)
}

/** Sends marked events in turn and asks ClickHouse itself for them; answers milliseconds from each 202 to its row. */
const watchMarks = async (
  server: IngestServer,
  marks: number,
  everyMillis: number
): Promise<Float64Array> => {
  const acceptedAt = new Map<string, number>()
  const waited: Array<number> = []
  const sending = (async () => {
    for (let index = 0; index < marks; index++) {
      const mark = `mark-${index}`
      await sendMarked(server, mark)
      acceptedAt.set(mark, performance.now())
      await sleep(everyMillis)
    }
  })()
  while (waited.length < marks) {
    for (const mark of await visibleMarks(server)) {
      const at = acceptedAt.get(mark)
      // Seen before its 202 was read: it is in the next answer too.
      if (at === undefined) continue
      if (at >= 0) waited.push(performance.now() - at)
      acceptedAt.set(mark, -1)
    }
    await sleep(5)
  }
  await sending
  return Float64Array.from(waited)
}

/** The first seconds of a load, in the time of so many marks: a fresh server is slow in them. */
const startMarks = 80

/** From 202 to visible in ClickHouse, without readers, beside a steady load of so many events a second. */
export const freshness =
  (ratePerSecond: number) =>
  (context: CaseContext<Given>): Promise<Measurement> =>
    withIngestServer(context, "shared", async (server) => {
      const marks = sized(context, { tiny: 5, quick: 80, full: 200 })
      const everyMillis = sized(context, { tiny: 5, full: 53 })
      const startedAt = performance.now()
      const beside = load({
        port: server.port,
        connections: connectionsOf(context),
        requests: beacons(server.site.id, visitorsOf(context), 1),
        ratePerSecond: sized(context, { tiny: 100, full: ratePerSecond }),
        durationMillis: sized(context, { tiny: 100, full: (marks + startMarks) * everyMillis })
      })
      // Past the load's own start.
      await sleep(sized(context, { tiny: 0, full: startMarks * everyMillis }))
      const waited = await watchMarks(server, marks, everyMillis)
      const elapsedMillis = performance.now() - startedAt
      answered(await beside, "202")
      return { work: marks, elapsedMillis, latency: latencyOf(waited) }
    })
