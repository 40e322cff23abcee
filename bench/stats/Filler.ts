import { createHash } from "node:crypto"
import { setImmediate } from "node:timers/promises"
import { Layer, ManagedRuntime, Redacted } from "effect"
import * as EventSink from "#src/analytics/store/EventSink.ts"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import { makeAgents } from "#streams/analytics/Agent.ts"
import { sentByBrowser } from "#streams/analytics/Draft.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { dayOf } from "#streams/analytics/EventTime.ts"
import { parsePageUrl } from "#streams/analytics/PageUrl.ts"
import { type Lookups, process as runSteps } from "#streams/analytics/Pipeline.ts"
import type { Site } from "#streams/analytics/Site.ts"
import type { SinkBatch } from "#streams/kernel/Sink.ts"
import type { TrafficEvent } from "#bench/traffic/Traffic.ts"

/** Events between two looks at what else there is to do. */
const sliceEvents = 1_000

/** Each day has a salt of its own, and the same one when days are added later. */
const saltAt = (millis: number) => {
  const day = dayOf(millis)
  return { day, text: createHash("sha256").update(`salt of ${day}`).digest("hex") }
}

const lookupsOf = (): Lookups => {
  const agents = makeAgents(20_000)
  let salt = saltAt(0)
  return {
    agentOf: (userAgent) => agents.get(userAgent),
    pageOf: parsePageUrl,
    countryOfAddress: () => "",
    saltAt: (millis) => (salt = dayOf(millis) === salt.day ? salt : saltAt(millis)),
    eventAgeMaxMillis: Number.POSITIVE_INFINITY
  }
}

/** The place in the fill's log where a batch begins; further fills go on there. */
export interface Place {
  readonly logId: bigint
  readonly seq: number
}

export interface Filler {
  /**
   * Writes events as if each had come at its own time: through the steps, as log records, by the sink. Only the log's
   * file is left out. Answers how many were stored.
   */
  readonly write: (events: Iterable<TrafficEvent>, from: Place, batchEvents: number) => Promise<number>
  readonly close: () => Promise<void>
}

/** `clickhouseUrl` as in `clickhouse.json` of a server's data directory. */
export const makeFiller = async (site: Site, clickhouseUrl: string): Promise<Filler> => {
  const config = AppConfig.layerOf({ clickhouseUrl: Redacted.make(clickhouseUrl) })
  const runtime = ManagedRuntime.make(
    ClickHouse.layer.pipe(Layer.provide(ClickHouseEndpoint.layer), Layer.provide(config))
  )
  const sink = await runtime.runPromise(EventSink.make())
  const lookups = lookupsOf()

  const recordOf = ({ beacon, ts, visitor }: TrafficEvent): Uint8Array => {
    const request = { ...visitor, countryCode: visitor.country, receivedMillis: ts }
    const sent = sentByBrowser(site, beacon, request)
    const stored = "origin" in sent ? runSteps(sent, lookups) : sent
    if (typeof stored === "object" && "visitor" in stored) return EventRecord.encode(stored).slice()
    throw new Error(`A made-up event was not taken: ${JSON.stringify({ beacon, stored })}`)
  }

  return {
    write: async (events, { logId, seq }, batchEvents) => {
      let next = seq
      let writing = Promise.resolve()
      const flush = async (payloads: ReadonlyArray<Uint8Array>): Promise<void> => {
        // One batch at a time, while the next is made.
        await writing
        const from = next
        const appendedAtMillis = Date.now()
        next += payloads.length
        const batch: SinkBatch = {
          logId,
          from,
          to: next,
          records: payloads.map((payload, index) => ({ offset: from + index, appendedAtMillis, payload })),
          token: `${logId}:${from}-${next}`,
          recovering: false
        }
        writing = runtime.runPromise(sink.write(batch))
      }
      let payloads: Array<Uint8Array> = []
      for (const event of events) {
        if (payloads.push(recordOf(event)) % sliceEvents === 0) await setImmediate()
        if (payloads.length < batchEvents) continue
        await flush(payloads)
        payloads = []
      }
      if (payloads.length > 0) await flush(payloads)
      await writing
      return next - seq
    },
    close: () => runtime.dispose()
  }
}
