import { Schema } from "effect"
import type { JsonBounds } from "#schemas/core/JsonBounds.ts"
import { CollectReason, type CollectResult } from "#schemas/analytics/CollectEvent.ts"
import { decodeCollectEvent } from "#streams/analytics/CollectDecoder.ts"
import { sentByServer } from "#streams/analytics/Draft.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { TooLate } from "#streams/analytics/EventTime.ts"
import { FieldFault, expected } from "#streams/analytics/FieldFault.ts"
import { parseJson } from "#streams/analytics/JsonText.ts"
import { process } from "#streams/analytics/Pipeline.ts"
import type { StoredEvent } from "#streams/analytics/StoredEvent.ts"
import type { PendingId } from "./EventIds.ts"
import { hashOfId } from "./IdIndex.ts"
import type { IngestParts } from "./Ingest.ts"
import type { SiteRow } from "../sites/SiteDirectory.ts"
import * as Answer from "./IngestAnswer.ts"
import type { IngestAnswer } from "./IngestAnswer.ts"

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
export class Collect {
  readonly #parts: IngestParts
  readonly #eventsMax: number

  constructor(parts: IngestParts, eventsMax: number) {
    this.#parts = parts
    this.#eventsMax = eventsMax
  }

  /** The site whose secret it is. */
  siteOf(authorization: string): SiteRow | undefined {
    const secret = /^bearer +(ssk_\S+) *$/i.exec(authorization)?.[1]
    return secret === undefined ? undefined : this.#parts.sites.findBySecret(secret)
  }

  take(body: Uint8Array, authorization: string, answer: (answer: IngestAnswer) => void): void {
    const { lease } = this.#parts
    if (!lease.isCounting()) return answer(Answer.standby(lease.refusal()))
    const site = this.siteOf(authorization)
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
    for (let index = 0; index < lost; index++) this.#parts.drops.count(site.id, Drop.rate, nowMillis)
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
      const seen = this.#parts.ids.look(batch.site.id, idHash, batch.nowMillis)
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
        if (drop !== undefined) this.#parts.drops.count(batch.site.id, drop, batch.nowMillis)
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
    const claim = this.#parts.ids.begin(batch.site.id, [...batch.idHashes], batch.nowMillis)
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
