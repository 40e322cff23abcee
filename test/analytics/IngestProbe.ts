import { Clock, Effect, Layer } from "effect"
import * as Statement from "effect/sql/Statement"
import { RealtimeRing } from "#actors/analytics/RealtimeRing.ts"
import { DropCounts } from "#src/analytics/ingest/DropCounts.ts"
import * as EventIds from "#src/analytics/ingest/EventIds.ts"
import { EventLog, eventLogConsumers } from "#src/analytics/ingest/EventLog.ts"
import { EventRates } from "#src/analytics/ingest/EventRates.ts"
import { FirstAccepted } from "#src/analytics/ingest/FirstAccepted.ts"
import { GeoIp } from "#src/analytics/ingest/GeoIp.ts"
import { Ingest } from "#src/analytics/ingest/Ingest.ts"
import { ingestRoutes } from "#src/analytics/ingest/IngestRoutes.ts"
import { Realtime } from "#src/analytics/reads/Realtime.ts"
import { Salts } from "#src/analytics/ingest/Salts.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { credentialOf, SiteDirectory } from "#src/analytics/sites/Sites.ts"
import { AppConfig } from "#src/Config.ts"
import { listed } from "#src/front/HeaderBlock.ts"
import type { HotRoute } from "#src/front/HotRoute.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import * as DurableLog from "#streams/kernel/DurableLog.ts"
import { temporaryDirectory } from "#test/kernel/streams/TemporaryLog.ts"
import { chrome, lookups, noon, site } from "./Senders.ts"

export const secret = `ssk_${"a".repeat(40)}`

/** The one site of a probe: `site` of Senders.ts, without a real owner. */
export const siteRow: SiteRow = {
  ...site,
  user_id: "usr_0000000000000000000001",
  name: "Example",
  timezone: "UTC",
  public: false,
  secret_hash: "",
  firstEventAt: null,
  resetAt: null,
  createdAt: new Date(noon)
}

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** the answer as JSON, undefined when it has no body */
  readonly json: { readonly [key: string]: unknown } | undefined
}

export interface IngestProbe {
  readonly routes: ReadonlyArray<HotRoute>
  readonly realtime: RealtimeRing
  readonly log: DurableLog.DurableLog
  /** the refusal of the next appends; undefined: the log takes them */
  refusal: DurableLog.LogFull | DurableLog.LogUnavailable | undefined
  /** the failure of the next appends after the log has taken them */
  failure: DurableLog.LogUnavailable | undefined
  /** the Retry-After of a refused sender in seconds; 0: within the rate */
  waitSeconds: number
  readonly rateAsked: Array<string | number | bigint>
  /** the Retry-After of a refused address in seconds; 0: within the rate */
  addressWaitSeconds: number
  readonly addressesAsked: Array<string>
  /** counts by reason */
  readonly dropped: Record<string, number>
  now: number
  /** `POST /api/event` */
  readonly event: (
    body: unknown,
    headers?: Readonly<Record<string, string>>,
    address?: string,
    isProxied?: boolean
  ) => Effect.Effect<Answered>
  /** `POST /api/v1/collect` */
  readonly collect: (body: unknown, headers?: Readonly<Record<string, string>>) => Effect.Effect<Answered>
  /** every event in the log */
  readonly stored: Effect.Effect<ReadonlyArray<StoredEvent>, DurableLog.LogUnavailable>
}

const bytesOf = (body: unknown): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body))

/** Sends one request to a hot route, as the front would, and answers what the route answers. */
const request = (
  route: HotRoute | undefined,
  body: unknown,
  headers: Readonly<Record<string, string>>,
  remoteAddress: string,
  isProxied = true
): Effect.Effect<Answered> =>
  Effect.callback<Answered>((resume) => {
    const bytes = Uint8Array.from(bytesOf(body))
    let isAnswered = false
    route?.handle(
      {
        method: "POST",
        path: route.path,
        query: "",
        header: (name) => (route.headers.includes(name) ? (headers[name] ?? "") : ""),
        remoteAddress,
        isProxied
      },
      bytes,
      {
        aborted: false,
        stream: () => {
          throw new Error("events are not answered in pieces")
        },
        onAbort: () => undefined,
        send: (status, sent, answer = "") => {
          const text = typeof answer === "string" ? answer : Buffer.from(answer).toString()
          if (isAnswered) throw new Error("answered twice")
          isAnswered = true
          const json = text === "" ? undefined : JSON.parse(text)
          resume(Effect.succeed({ status, headers: Object.fromEntries(listed(sent)), text, json }))
        }
      }
    )
    // The body is the front's again once the handler has returned.
    bytes.fill(0x7b)
  })

/** The real ingest on a real log in a directory of its own; sites, rates and counts are the test's. */
export const startIngest = Effect.gen(function* () {
  const root = yield* temporaryDirectory
  const log = yield* DurableLog.open({
    directory: `${root}/log`,
    consumers: Object.values(eventLogConsumers),
    maxBatchBytes: 4 * 1024 * 1024
  })
  const ids = yield* EventIds.make(log, { directory: `${root}/ids`, idsMax: 10_000, openSitesMax: 4 })
  const realtime = new RealtimeRing({ sitesMax: 10, presencesMax: 1000 })
  const state: Pick<
    IngestProbe,
    | "refusal"
    | "failure"
    | "waitSeconds"
    | "rateAsked"
    | "addressWaitSeconds"
    | "addressesAsked"
    | "dropped"
    | "now"
  > = {
    refusal: undefined,
    failure: undefined,
    waitSeconds: 0,
    rateAsked: [],
    addressWaitSeconds: 0,
    addressesAsked: [],
    dropped: {},
    now: noon
  }
  const rate = (...asked: ReadonlyArray<string | number | bigint>) => {
    state.rateAsked.push(...asked)
    return { allowed: state.waitSeconds === 0, retryAfterSeconds: state.waitSeconds }
  }
  const breakable: DurableLog.DurableLog = {
    ...log,
    append: (record, done) => {
      const { failure } = state
      return state.refusal ?? log.append(record, (error) => done(failure ?? error))
    },
    appendAll: (records, done) => {
      const { failure } = state
      return state.refusal ?? log.appendAll(records, (error) => done(failure ?? error))
    }
  }
  const clock = yield* Clock.Clock
  const parts = Layer.mergeAll(
    Layer.succeed(EventLog, breakable),
    Layer.succeed(EventIds.EventIds, ids),
    Layer.succeed(Realtime, realtime),
    FirstAccepted.layer,
    Layer.succeed(GeoIp, { countryOf: lookups.countryOfAddress }),
    Layer.succeed(Salts, { at: lookups.saltAt }),
    Layer.succeed(EventRates, {
      takeAddress: (id, address) => {
        state.addressesAsked.push(`${id} ${address}`)
        return { allowed: state.addressWaitSeconds === 0, retryAfterSeconds: state.addressWaitSeconds }
      },
      takeVisitor: rate,
      takeCollect: rate
    }),
    Layer.succeed(DropCounts, {
      count: (_, { reason }) => void (state.dropped[reason] = (state.dropped[reason] ?? 0) + 1),
      ofSite: () => Effect.succeed([])
    }),
    Layer.mock(SiteDirectory, {
      columns: Statement.fragment([]),
      live: Statement.fragment([]),
      by: () => undefined,
      all: () => [siteRow].values(),
      list: () => [siteRow],
      applyLocal: () => undefined,
      status: () => ({ rows: 1, suspended: false, staleMillis: 0 }),
      get: (id) => (id === site.id ? siteRow : undefined),
      findBySecret: (sent) => (sent === secret ? credentialOf(siteRow) : undefined)
    }),
    Layer.succeed(Clock.Clock, { ...clock, currentTimeMillisUnsafe: () => state.now }),
    AppConfig.layerOf({ dataDir: root })
  )
  const routes = yield* ingestRoutes.pipe(Effect.provide(Ingest.layer.pipe(Layer.provideMerge(parts))))
  const [eventRoute, collectRoute] = routes
  const probe: IngestProbe = Object.assign(state, {
    routes,
    realtime,
    log,
    event: (
      body: unknown,
      headers: Readonly<Record<string, string>> = {},
      address = "192.0.2.1",
      isProxied = true
    ) => request(eventRoute, body, { "user-agent": chrome, ...headers }, address, isProxied),
    collect: (
      body: unknown,
      headers: Readonly<Record<string, string>> = { authorization: `Bearer ${secret}` }
    ) => request(collectRoute, body, headers, "198.51.100.1"),
    stored: log
      .consumer(eventLogConsumers.clickHouse)
      .read({ from: 0, maxRecords: Infinity, maxBytes: Infinity })
      .pipe(Effect.map((records) => records.map(({ payload }) => EventRecord.decode(payload))))
  })
  return probe
})
