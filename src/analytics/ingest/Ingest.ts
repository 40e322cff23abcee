import { Clock, Context, Effect, Layer, Schema } from "effect"
import { AppConfig } from "#src/Config.ts"
import { makeAgents } from "#streams/analytics/Agent.ts"
import { BoundedCache } from "#streams/analytics/BoundedCache.ts"
import { decodeBrowserEvent } from "#streams/analytics/BrowserDecoder.ts"
import { type BrowserRequest, sentByBrowser, sentByServer } from "#streams/analytics/Draft.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import { eventAgeMaxMillis, TooLate } from "#streams/analytics/EventTime.ts"
import { FieldFault, expected } from "#streams/analytics/FieldFault.ts"
import { isJsonObject } from "#streams/analytics/FieldReader.ts"
import { parseJson } from "#streams/analytics/JsonText.ts"
import { parsePageUrl } from "#streams/analytics/PageUrl.ts"
import { type Lookups, process } from "#streams/analytics/Pipeline.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import { CountingLease, type CountingLeaseService } from "../counting/CountingLease.ts"
import { DropCounts } from "./DropCounts.ts"
import { EventIds, type PendingId } from "./EventIds.ts"
import { EventLog } from "./EventLog.ts"
import { EventRates } from "./EventRates.ts"
import { FirstAccepted } from "./FirstAccepted.ts"
import { GeoIp } from "./GeoIp.ts"
import type { IngestAnswer } from "./IngestAnswer.ts"
import { Realtime } from "../reads/Realtime.ts"
import { Salts } from "./Salts.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { type SiteCredential, SiteDirectory } from "../sites/Sites.ts"
import type { JsonBounds } from "#schemas/core/JsonBounds.ts"
import { CollectReason, type CollectResult } from "#schemas/analytics/CollectEvent.ts"
import { decodeCollectEvent } from "#streams/analytics/CollectDecoder.ts"
import { hashOfId } from "./IdIndex.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import * as Answer from "./IngestAnswer.ts"

/** The shared parts of the two endpoints: the source of events, their destination, and the checks in between. */
interface IngestParts {
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
        ownerOf: (authorization) => collect.credentialOf(authorization)?.ownerId,
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
    const claimed = isJsonObject(json) && typeof json.s === "string" ? parts.sites.get(json.s) : undefined
    if (claimed !== undefined) parts.drops.count(claimed.dataset, Drop.invalid, parts.nowMillis())
    return answer(Answer.invalid(event))
  }
  const site = parts.sites.get(event.s)
  if (site === undefined) return answer(Answer.unknownSite)
  const receivedMillis = parts.nowMillis()
  const ofAddress = parts.rates.takeAddress(site.id, request.address)
  if (!ofAddress.allowed) {
    parts.drops.count(site.dataset, Drop.rate, receivedMillis)
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
    parts.drops.count(site.dataset, Drop.invalid, receivedMillis)
    return answer(Answer.invalid(stored))
  }
  if (stored instanceof Drop) {
    parts.drops.count(site.dataset, stored, receivedMillis)
    return answer(Answer.taken)
  }
  append(parts, site, stored, (given) => {
    if (given === Answer.taken && !(sent instanceof FieldFault) && sent.props.isCut) {
      parts.drops.count(site.dataset, Drop.property, receivedMillis)
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
    parts.drops.count(site.dataset, Drop.rate, event.received)
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

/** A batch on its way: the outcome of each event, and the records for the log. */
interface Batch {
  readonly site: SiteRow
  readonly nowMillis: number
  readonly results: Array<CollectResult>
  /** of the results by index; counted once the batch is taken, since a batch that is refused comes again */
  readonly drops: Array<Drop | undefined>
  readonly events: Array<StoredEvent>
  readonly records: Array<Uint8Array>
  /** ids of the events in `records`, of those that have one */
  readonly idHashes: Set<bigint>
  /** repeats of events that are on their way to the disk themselves */
  readonly awaited: Array<{ readonly index: number; readonly original: PendingId }>
}

/** `POST /api/v1/collect`. Source: contract/analytics#collect. */
class Collect {
  readonly #parts: IngestParts
  readonly #eventsMax: number

  constructor(parts: IngestParts, eventsMax: number) {
    this.#parts = parts
    this.#eventsMax = eventsMax
  }

  credentialOf(authorization: string): SiteCredential | undefined {
    const secret = /^bearer +(ssk_\S+) *$/i.exec(authorization)?.[1]
    return secret === undefined ? undefined : this.#parts.sites.findBySecret(secret)
  }

  take(body: Uint8Array, authorization: string, answer: (answer: IngestAnswer) => void): void {
    const { lease } = this.#parts
    if (!lease.isCounting()) return answer(Answer.standby(lease.refusal()))
    const site = this.credentialOf(authorization)?.site
    if (site === undefined) return answer(Answer.badSecret)
    const nowMillis = this.#parts.nowMillis()
    const prepaid = body.length > paidLaterBytes ? Math.ceil(body.length / eventBytes) : 0
    if (!this.#pay(site, prepaid, nowMillis, answer)) return
    const json = parseJson(body, batchBounds)
    if (json instanceof FieldFault) return answer(Answer.invalid(json))
    const inputs: ReadonlyArray<unknown> = Array.isArray(json) ? json : [json]
    if (inputs.length > this.#eventsMax) return answer(Answer.tooManyEvents(this.#eventsMax))
    if (inputs.length === 0) return answer(Answer.invalid(expected("body", `1 to ${this.#eventsMax} events`)))
    if (!this.#pay(site, inputs.length - prepaid, nowMillis, answer)) return
    const batch: Batch = {
      site,
      nowMillis,
      results: [],
      drops: [],
      events: [],
      records: [],
      idHashes: new Set(),
      awaited: []
    }
    inputs.forEach((input, index) => batch.results.push(this.#look(batch, input, index)))
    this.#append(batch, answer)
  }

  /** Takes some events of the site's rate; false where they are too many, and the answer says so. */
  #pay(site: SiteRow, events: number, nowMillis: number, answer: (answer: IngestAnswer) => void): boolean {
    if (events <= 0) return true
    const rate = this.#parts.rates.takeCollect(site.id, events)
    if (rate.allowed) return true
    const lost = Math.min(events, this.#eventsMax)
    for (let index = 0; index < lost; index++) this.#parts.drops.count(site.dataset, Drop.rate, nowMillis)
    answer(Answer.rateLimited(rate.retryAfterSeconds))
    return false
  }

  /** The outcome of one event if the log takes the batch. */
  #look(batch: Batch, input: unknown, index: number): CollectResult {
    const event = decodeCollectEvent(input)
    if (event instanceof FieldFault) return this.#refuse(batch, index, event)
    const sent = sentByServer(batch.site, event, batch.nowMillis)
    const stored = process(sent, this.#parts.lookups)
    if (stored instanceof FieldFault) return this.#refuse(batch, index, stored)
    if (stored instanceof Drop) return this.#drop(batch, index, stored)
    const idHash = event.id === null || event.id === "" ? 0n : hashOfId(event.id)
    if (idHash !== 0n) {
      if (batch.idHashes.has(idHash)) return this.#drop(batch, index, Drop.duplicate)
      const seen = this.#parts.ids.look(batch.site.dataset, idHash, batch.nowMillis)
      if (typeof seen !== "string") batch.awaited.push({ index, original: seen })
      if (seen !== "new") return this.#drop(batch, index, Drop.duplicate)
      batch.idHashes.add(idHash)
    }
    if (sent.props.isCut) batch.drops[index] = Drop.property
    batch.events.push(stored)
    batch.records.push(EventRecord.encode(stored, idHash).slice())
    return { index, stored: true }
  }

  #refuse(batch: Batch, index: number, fault: FieldFault): CollectResult {
    batch.drops[index] = fault instanceof TooLate ? Drop.late : Drop.invalid
    return { index, stored: false, error: fault.message }
  }

  #drop(batch: Batch, index: number, drop: Drop): CollectResult {
    const { reason } = drop
    if (!isTold(reason)) throw new Error(`a collected event was dropped as ${reason}`)
    batch.drops[index] = drop
    return { index, stored: false, reason }
  }

  #accepted({ nowMillis, site }: Batch, event: StoredEvent): void {
    this.#parts.realtime.add(event, nowMillis)
    this.#parts.firsts.note(site, event.ts)
  }

  /** All of the batch's events or none; the answer waits until they, and those that they repeat, are on disk. */
  #append(batch: Batch, answer: (answer: IngestAnswer) => void): void {
    let failure: IngestAnswer | undefined
    let outstanding = 1
    const settle = (): void => {
      if (--outstanding > 0) return
      if (failure !== undefined) return answer(failure)
      for (const drop of batch.drops) {
        if (drop !== undefined) this.#parts.drops.count(batch.site.dataset, drop, batch.nowMillis)
      }
      answer(Answer.collected(batch.results))
    }
    for (const { index, original } of batch.awaited) {
      outstanding++
      original.whenSettled((isStored) => {
        if (!isStored) {
          batch.results[index] = { index, stored: false, error: notStored }
          batch.drops[index] = undefined
        }
        settle()
      })
    }
    if (batch.records.length === 0) return settle()
    const claim = this.#parts.ids.begin(batch.site.dataset, [...batch.idHashes], batch.nowMillis)
    const appended = this.#parts.log.appendAll(batch.records, (refusal) => {
      claim.settle(refusal === undefined)
      if (refusal !== undefined) failure = Answer.refused(refusal)
      else for (const event of batch.events) this.#accepted(batch, event)
      settle()
    })
    if (typeof appended === "number") return claim.at(appended)
    claim.settle(false)
    failure = Answer.refused(appended)
    settle()
  }
}

/** A longer body is costly to read with any contents, and is charged before: an event for so many bytes. */
const paidLaterBytes = 64 * 1024
const eventBytes = 4 * 1024

/** A hundred events with all that they may carry have some 4,000 members. */
const batchBounds: JsonBounds = { members: 10_000, values: 20_000 }

const isTold = Schema.is(CollectReason)

const notStored = "id: the event that this one repeats could not be stored; send it again"
