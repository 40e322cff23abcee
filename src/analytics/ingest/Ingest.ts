import { Clock, Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { makeAgents } from "#streams/analytics/Agent.ts"
import { BoundedCache } from "#streams/analytics/BoundedCache.ts"
import { decodeBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { type BrowserRequest, sentByBrowser } from "#streams/analytics/Draft.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { eventAgeMaxMillis } from "#streams/analytics/EventTime.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import { isJsonObject } from "#streams/analytics/FieldReader.ts"
import { parseJson } from "#streams/analytics/JsonText.ts"
import { parsePageUrl } from "#streams/analytics/PageUrl.ts"
import { type Lookups, process } from "#streams/analytics/Pipeline.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { Collect } from "./Collect.ts"
import { CountingLease, type CountingLeaseService } from "../counting/CountingLease.ts"
import { DropCounts } from "./DropCounts.ts"
import { EventIds } from "./EventIds.ts"
import { EventLog } from "./EventLog.ts"
import { EventRates } from "./EventRates.ts"
import { FirstAccepted } from "./FirstAccepted.ts"
import { GeoIp } from "./GeoIp.ts"
import * as Answer from "./IngestAnswer.ts"
import type { IngestAnswer } from "./IngestAnswer.ts"
import { Realtime } from "../reads/Realtime.ts"
import { Salts } from "./Salts.ts"
import { SiteDirectory, type SiteRow } from "../sites/SiteDirectory.ts"

/** The shared parts of the two endpoints: the source of events, their destination, and the checks in between. */
export interface IngestParts {
  readonly sites: SiteDirectory["Service"]
  readonly log: EventLog["Service"]
  readonly ids: EventIds["Service"]
  readonly rates: EventRates["Service"]
  readonly drops: DropCounts["Service"]
  readonly firsts: FirstAccepted["Service"]
  readonly realtime: Realtime["Service"]
  readonly lookups: Lookups
  readonly lease: CountingLeaseService
  readonly nowMillis: () => number
}

/**
 * Takes events in. Everything up to the log is synchronous, without a fiber per event; `answer` is called exactly once,
 * after the event is on disk or as soon as it is clear that it will not be.
 */
export class Ingest extends Context.Service<
  Ingest,
  {
    /** `POST /api/event` */
    readonly event: (
      body: Uint8Array,
      request: Omit<BrowserRequest, "receivedMillis">,
      answer: (answer: IngestAnswer) => void
    ) => void
    /** `POST /api/v1/collect`; `authorization` as it came */
    readonly collect: (
      body: Uint8Array,
      authorization: string,
      answer: (answer: IngestAnswer) => void
    ) => void
    /** the owner of the site of a `collect`, before its body is read; undefined: the secret is unknown */
    readonly ownerOf: (authorization: string) => string | undefined
    /** why events are not taken here, before anything of them is read; undefined: they are */
    readonly refusal: () => IngestAnswer | undefined
    /** for imports, which go through the same steps with another salt and without the limit of age */
    readonly lookups: Lookups
  }
>()("signalbox/analytics/Ingest") {
  static readonly layer = Layer.effect(
    Ingest,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const clock = yield* Clock.Clock
      const agents = makeAgents(limits.userAgents)
      const pages = new BoundedCache(limits.pageUrls, parsePageUrl)
      const geoIp = yield* GeoIp
      const salts = yield* Salts
      const lookups: Lookups = {
        agentOf: (userAgent) => agents.get(userAgent),
        // A long address is rarely seen twice, and would make the cache large.
        pageOf: (url) => (url.length <= rememberedUrlLength ? pages.get(url) : parsePageUrl(url)),
        countryOfAddress: geoIp.countryOf,
        saltAt: salts.at,
        eventAgeMaxMillis
      }
      const parts: IngestParts = {
        sites: yield* SiteDirectory,
        log: yield* EventLog,
        ids: yield* EventIds,
        rates: yield* EventRates,
        drops: yield* DropCounts,
        firsts: yield* FirstAccepted,
        realtime: yield* Realtime,
        lookups,
        lease: yield* CountingLease,
        nowMillis: () => clock.currentTimeMillisUnsafe()
      }
      const collect = new Collect(parts, limits.collectEvents)
      return Ingest.of({
        event: (body, request, answer) => takeEvent(parts, body, request, answer),
        collect: (body, authorization, answer) => collect.take(body, authorization, answer),
        refusal: () => (parts.lease.isCounting() ? undefined : Answer.standby(parts.lease.refusal())),
        ownerOf: (authorization) => collect.siteOf(authorization)?.userId,
        lookups
      })
    })
  )
}

const rememberedUrlLength = 1024

const takeEvent = (
  parts: IngestParts,
  body: Uint8Array,
  request: Omit<BrowserRequest, "receivedMillis">,
  answer: (answer: IngestAnswer) => void
): void => {
  if (!parts.lease.isCounting()) return answer(Answer.standby(parts.lease.refusal()))
  const json = parseJson(body)
  if (json instanceof FieldFault) return answer(Answer.invalid(json))
  const event = decodeBrowserEvent(json)
  if (event instanceof FieldFault) {
    const claimed = isJsonObject(json) && typeof json.s === "string" ? parts.sites.find(json.s) : undefined
    if (claimed !== undefined) parts.drops.count(claimed.id, Drop.invalid, parts.nowMillis())
    return answer(Answer.invalid(event))
  }
  const site = parts.sites.find(event.s)
  if (site === undefined) return answer(Answer.unknownSite)
  const receivedMillis = parts.nowMillis()
  const ofAddress = parts.rates.takeAddress(site.id, request.address)
  if (!ofAddress.allowed) {
    parts.drops.count(site.id, Drop.rate, receivedMillis)
    return answer(Answer.rateLimited(ofAddress.retryAfterSeconds))
  }
  const sent = sentByBrowser(site, event, {
    address: request.address,
    userAgent: request.userAgent,
    countryCode: request.countryCode,
    receivedMillis
  })
  const stored = sent instanceof FieldFault ? sent : process(sent, parts.lookups)
  if (stored instanceof FieldFault) {
    parts.drops.count(site.id, Drop.invalid, receivedMillis)
    return answer(Answer.invalid(stored))
  }
  if (stored instanceof Drop) {
    parts.drops.count(site.id, stored, receivedMillis)
    return answer(Answer.taken)
  }
  append(parts, site, stored, (given) => {
    if (given === Answer.taken && !(sent instanceof FieldFault) && sent.props.isCut) {
      parts.drops.count(site.id, Drop.property, receivedMillis)
    }
    answer(given)
  })
}

/** The last gate, and then the log, which answers for the event once it is on disk. */
const append = (
  parts: IngestParts,
  site: SiteRow,
  event: StoredEvent,
  answer: (answer: IngestAnswer) => void
): void => {
  const rate = parts.rates.takeVisitor(site.id, event.visitor)
  if (!rate.allowed) {
    parts.drops.count(site.id, Drop.rate, event.received)
    return answer(Answer.rateLimited(rate.retryAfterSeconds))
  }
  const appended = parts.log.append(EventRecord.encode(event), (failure) => {
    if (failure !== undefined) return answer(Answer.refused(failure))
    parts.realtime.add(event, event.received)
    parts.firsts.note(site, event.ts)
    answer(Answer.taken)
  })
  if (typeof appended !== "number") answer(Answer.refused(appended))
}
