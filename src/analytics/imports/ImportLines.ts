import { Clock, Effect } from "effect"
import { decodeCollectEvent } from "#streams/analytics/CollectDecoder.ts"
import { sentByServer } from "#streams/analytics/Draft.ts"
import { Drop } from "#streams/analytics/Drop.ts"
import { TooLate } from "#streams/analytics/EventTime.ts"
import * as EventRecord from "#streams/analytics/EventRecord.ts"
import { FieldFault } from "#streams/analytics/FieldFault.ts"
import * as ImportRecord from "#streams/analytics/ImportRecord.ts"
import { parseJson } from "#streams/analytics/JsonText.ts"
import { type Lookups, process } from "#streams/analytics/Pipeline.ts"
import type { DurableLog, LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { botCountedAs, nameToCount } from "#streams/analytics/Bots.ts"
import { hashOfId } from "../ingest/IdIndex.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"

export interface ImportPart {
  readonly name: string
  /** the name of an import that this one begins with, where it is new */
  readonly continues: string | undefined
  /** lines of the import before this part */
  readonly offset: number
  readonly isLast: boolean
  /** NDJSON lines, as they came */
  readonly lines: ReadonlyArray<Uint8Array>
}

/** A line for the log. */
interface AcceptedLine {
  /** counted over the whole import */
  readonly line: number
  readonly record: Uint8Array
}

interface ImportLinesOptions {
  readonly site: SiteRow
  /** the name in the records */
  readonly root: string
  readonly salt: string
  readonly lookups: Lookups
}

/** Lines that are looked at without a pause. */
const linesPerTurn = 1_000
const errorsShown = 20

interface DropCounted {
  readonly drop: Drop
  readonly count: number
}

/** The checked lines of one part: the records for the log, and the outcome of the others. */
export class ImportLines {
  readonly accepted: Array<AcceptedLine> = []
  readonly #options: ImportLinesOptions
  readonly #lookups: Lookups
  readonly #dropped = new Map<string, DropCounted>()
  readonly #errors: Array<{ readonly line: number; readonly error: string }> = []
  #failed = 0

  constructor(options: ImportLinesOptions) {
    this.#options = options
    this.#lookups = {
      ...options.lookups,
      saltAt: () => ({ day: 0, text: options.salt }),
      eventAgeMaxMillis: Number.POSITIVE_INFINITY
    }
  }

  /** Looks at the part's lines from one of the import's on. */
  look(part: ImportPart, from: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (let index = from - part.offset; index < part.lines.length; index++) {
        if (index % linesPerTurn === 0) yield* Effect.yieldNow
        this.#look(part.lines[index] ?? new Uint8Array(), part.offset + index, yield* Clock.currentTimeMillis)
      }
    })
  }

  #look(text: Uint8Array, line: number, nowMillis: number): void {
    const { root, site } = this.#options
    const json = parseJson(text)
    if (json instanceof FieldFault) return this.#refuse(line, json)
    const event = decodeCollectEvent(json)
    if (event instanceof FieldFault) return this.#refuse(line, event)
    const stored = process(sentByServer(site, event, nowMillis), this.#lookups)
    // An import has no limit of age but what its site keeps.
    if (stored instanceof TooLate) return this.#count(Drop.late)
    if (stored instanceof FieldFault) return this.#refuse(line, stored)
    if (stored instanceof Drop) return this.#count(stored)
    // The id is for other processes on the same stores, which do not see this one's log.
    const record = EventRecord.encode(stored, hashOfId(`import ${root} ${line}`))
    this.accepted.push({ line, record: ImportRecord.encode({ name: root, line }, record) })
  }

  #refuse(line: number, fault: FieldFault): void {
    this.#failed++
    this.#count(Drop.invalid)
    if (this.#errors.length < errorsShown) this.#errors.push({ line, error: fault.message })
  }

  #count(drop: Drop): void {
    const key = `${drop.reason} ${nameToCount(drop.bot)}`
    this.#dropped.set(key, { drop, count: (this.#dropped.get(key)?.count ?? 0) + 1 })
  }

  /** Every line that is in no figure, the refused ones too. */
  drops(): ReadonlyArray<DropCounted> {
    return [...this.#dropped.values()]
  }

  tally() {
    const dropped: Record<string, number> = {}
    const bots: Record<string, number> = {}
    for (const { count, drop } of this.#dropped.values()) {
      if (drop === Drop.invalid) continue
      dropped[drop.reason] = (dropped[drop.reason] ?? 0) + count
      if (drop.reason === "bot") bots[botCountedAs(nameToCount(drop.bot)).name] = count
    }
    return { stored: this.accepted.length, failed: this.#failed, dropped, bots, errors: this.#errors }
  }
}

/** Of one append to the log: well below what one group commit carries. */
const appendLimits = { lines: 1_000, bytes: 1024 * 1024 }

/** Appends lines in their order, some at a time; `onDurable` hears the last of those that are on disk. */
export const appendLines = Effect.fnUntraced(function* (
  log: DurableLog,
  lines: ReadonlyArray<AcceptedLine>,
  onDurable: (line: number) => void
): Effect.fn.Return<void, LogFull | LogUnavailable> {
  for (let at = 0; at < lines.length;) {
    const from = at
    let bytes = 0
    while (at < lines.length && at - from < appendLimits.lines && (at === from || bytes < appendLimits.bytes))
      bytes += lines[at++]?.record.length ?? 0
    const some = lines.slice(from, at)
    yield* appendAll(
      log,
      some.map(({ record }) => record)
    )
    onDurable(some.at(-1)?.line ?? 0)
  }
})

const appendAll = (log: DurableLog, records: ReadonlyArray<Uint8Array>) =>
  Effect.callback<void, LogFull | LogUnavailable>((resume) => {
    const appended = log.appendAll(records, (refusal) =>
      resume(refusal === undefined ? Effect.void : Effect.fail(refusal))
    )
    if (typeof appended !== "number") resume(Effect.fail(appended))
  })
