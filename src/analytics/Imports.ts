import { Clock, Context, Effect, Layer, Schema, Semaphore } from "effect"
import type { ImportedPart } from "#schemas/analytics/ImportApi.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"
import { storeAway } from "#src/infra/http/StoreAway.ts"
import { decodeCollectEvent } from "#streams/analytics/CollectDecoder.ts"
import { sentByServer } from "#streams/analytics/Draft.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import { parseJson } from "#streams/analytics/JsonText.ts"
import { type Lookups, process } from "#streams/analytics/Pipeline.ts"
import type { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { CountingLease } from "./counting/CountingLease.ts"
import { EventDrain } from "./EventDrain.ts"
import { EventIds } from "./EventIds.ts"
import { EventLog } from "./EventLog.ts"
import { hashOfId } from "./IdIndex.ts"
import { ImportsRepository } from "./ImportsRepository.ts"
import { Ingest } from "./Ingest.ts"
import { monthGroups } from "./MonthGroups.ts"
import type { SiteRow } from "./SiteDirectory.ts"

/** The part begins beyond what was taken: lines in between would be missing. */
export class ImportGap extends Schema.TaggedError<ImportGap>()("ImportGap", { next: Schema.Int }) {}

export interface ImportPart {
  readonly name: string
  /** lines of the import before this part */
  readonly offset: number
  readonly isLast: boolean
  /** NDJSON lines, as they came */
  readonly lines: ReadonlyArray<Uint8Array>
}

/**
 * Past events of a site, part by part, through the steps and the log of live ones. A part may be repeated: what was
 * taken is known by `imports.next`, and what a crash left in the log without telling `next` by the ids of its lines.
 */
export class Imports extends Context.Service<
  Imports,
  {
    readonly take: (
      site: SiteRow,
      part: ImportPart
    ) => Effect.Effect<ImportedPart, ImportGap | LogFull | LogUnavailable | ServiceUnavailable>
  }
>()("signalbox/analytics/Imports") {
  static readonly layerNoDeps = Layer.effect(
    Imports,
    Effect.gen(function* () {
      const lease = yield* CountingLease
      const repository = yield* ImportsRepository
      const taker = yield* makeTaker
      // One part at a time: it bounds memory, and two tries of one part cannot overtake each other.
      const oneAtATime = yield* Semaphore.make(1)
      return Imports.of({
        take: (site, part) =>
          oneAtATime.withPermits(1)(
            Effect.gen(function* () {
              if (!lease.isCounting())
                return yield* new ServiceUnavailable({ error: lease.refusal(), code: "standby" })
              const { next, salt } = yield* storeAway(repository.begin(site.id, part.name))
              if (part.offset > next) return yield* new ImportGap({ next })
              const skipped = next - part.offset
              const tally = yield* taker(site, salt, {
                ...part,
                offset: next,
                lines: part.lines.slice(skipped)
              })
              const reached = Math.max(next, part.offset + part.lines.length)
              yield* storeAway(repository.advance(site.id, part.name, reached, part.isLast))
              return { next: reached, ...tally }
            })
          )
      })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(ImportsRepository.layer))
}

/** Lines of one append to the log: well below what one group commit carries. */
const linesPerAppend = 1_000
const errorsShown = 20

interface Tally {
  stored: number
  failed: number
  readonly dropped: Record<string, number>
  readonly errors: Array<{ readonly line: number; readonly error: string }>
}

/** A line for the log. */
interface Accepted {
  /** the UTC day of its identity */
  readonly day: number
  readonly hash: bigint
  readonly record: Uint8Array
}

/** One import as its lines are looked at. */
interface Work {
  readonly site: SiteRow
  readonly part: ImportPart
  readonly lookups: Lookups
  readonly ids: EventIds["Service"]
  readonly tally: Tally
}

/** What a line becomes; undefined: nothing for the log, and counted. */
const look = ({ ids, lookups, part, site, tally }: Work, index: number, nowMillis: number) => {
  const line = part.offset + index
  const refuse = (fault: FieldFault): undefined => {
    tally.failed++
    if (tally.errors.length < errorsShown) tally.errors.push({ line, error: fault.message })
  }
  const json = parseJson(part.lines[index] ?? new Uint8Array())
  if (json instanceof FieldFault) return refuse(json)
  const event = decodeCollectEvent(json)
  if (event instanceof FieldFault) return refuse(event)
  const stored = process(sentByServer(site, event, nowMillis), lookups)
  if (stored instanceof FieldFault) return refuse(stored)
  if (stored instanceof Drop) {
    tally.dropped[stored.reason] = (tally.dropped[stored.reason] ?? 0) + 1
    return undefined
  }
  tally.stored++
  const hash = hashOfId(`import ${part.name} ${line}`)
  // In the log already: a crash came between it and `imports.next`.
  if (ids.look(site.id, hash, nowMillis) !== "new") return undefined
  return { day: stored.day, hash, record: EventRecord.encode(stored, hash).slice() }
}

const append = (
  log: EventLog["Service"],
  ids: EventIds["Service"],
  site: SiteRow,
  accepted: ReadonlyArray<Accepted>,
  nowMillis: number
) =>
  Effect.callback<void, LogFull | LogUnavailable>((resume) => {
    const hashes = accepted.map(({ hash }) => hash)
    const claim = ids.begin(site.id, hashes, nowMillis)
    const records = accepted.map(({ record }) => record)
    const appended = log.appendAll(records, (refusal) => {
      claim.settle(refusal === undefined)
      resume(refusal === undefined ? Effect.void : Effect.fail(refusal))
    })
    if (typeof appended === "number") return claim.at(appended)
    claim.settle(false)
    resume(Effect.fail(appended))
  })

const makeTaker = Effect.gen(function* () {
  const ingest = yield* Ingest
  const log = yield* EventLog
  const ids = yield* EventIds
  const { flush } = yield* EventDrain
  // A store that is away has no readers to be kept waiting, and the events wait in the log.
  const stored = Effect.catch(flush, (error) =>
    Effect.logDebug("an import does not wait for its store", error)
  )

  return Effect.fnUntraced(function* (site: SiteRow, salt: string, part: ImportPart) {
    const lookups: Lookups = {
      ...ingest.lookups,
      saltAt: () => ({ day: 0, text: salt }),
      eventAgeMaxMillis: Number.POSITIVE_INFINITY
    }
    const tally: Tally = { stored: 0, failed: 0, dropped: {}, errors: [] }
    const work: Work = { site, part, lookups, ids, tally }
    const accepted: Array<Accepted> = []
    for (let index = 0; index < part.lines.length; index++) {
      if (index % linesPerAppend === 0) yield* Effect.yieldNow
      const found = look(work, index, yield* Clock.currentTimeMillis)
      if (found !== undefined) accepted.push(found)
    }
    const groups = monthGroups(accepted)
    for (const [place, group] of groups.entries()) {
      // A month costs the store as much as thousands of events: readers of other sites get a turn in between.
      if (place > 0) yield* stored
      for (let from = 0; from < group.length; from += linesPerAppend) {
        const lines = group.slice(from, from + linesPerAppend)
        yield* append(log, ids, site, lines, yield* Clock.currentTimeMillis)
      }
    }
    return tally
  })
})
