import { Clock, Context, Effect, Layer, Schedule, Schema, Semaphore } from "effect"
import type { Import, ImportedPart } from "#schemas/analytics/ImportApi.ts"
import { storeAway } from "#src/http/StoreAway.ts"
import { dayOf } from "#streams/analytics/EventTime.ts"
import { nameToCount } from "#streams/analytics/Bots.ts"
import type { LogFull, LogUnavailable } from "#streams/kernel/DurableLog.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { ImportLog } from "../ingest/EventLog.ts"
import { appendLines, ImportLines, type ImportPart } from "./ImportLines.ts"
import { ImportProgress } from "./ImportProgress.ts"
import {
  type ImportRow,
  ImportsRepository,
  type ImportUnknown,
  type TooManyImports
} from "./ImportsRepository.ts"
import { Ingest } from "../ingest/Ingest.ts"
import type { SiteRow } from "#schemas/analytics/Site.ts"
import { ServiceUnavailable } from "#schemas/core/Problem.ts"

/** The part begins beyond what was taken: lines in between would be missing. */
export class ImportGap extends Schema.TaggedError<ImportGap>()("ImportGap", { next: Schema.Int }) {}

type ImportProblem =
  | ImportGap
  | ImportUnknown
  | TooManyImports
  | LogFull
  | LogUnavailable
  | ServiceUnavailable

/**
 * Past events of a site, part by part, through the steps of live ones and a log of their own. A part may be repeated:
 * `imports.next` says how far it was taken, and the log which lines a crash left unrecorded.
 */
export class Imports extends Context.Service<
  Imports,
  {
    readonly take: (site: SiteRow, part: ImportPart) => Effect.Effect<ImportedPart, ImportProblem>
    /** the newest first */
    readonly list: (site: SiteRow) => Effect.Effect<ReadonlyArray<Import>, ServiceUnavailable>
  }
>()("signalbox/analytics/Imports") {
  static readonly layerNoDeps = Layer.effect(
    Imports,
    Effect.gen(function* () {
      const lease = yield* CountingLease
      const repository = yield* ImportsRepository
      const { lookups } = yield* Ingest
      const log = yield* ImportLog
      const progress = new ImportProgress(log, repository)
      yield* progress.restore
      // One part at a time: it bounds memory, and two tries of one part cannot overtake each other.
      const oneAtATime = yield* Semaphore.make(1)
      const alone = oneAtATime.withPermits(1)
      // Until Postgres knows it, the log cannot forget it.
      yield* Effect.forkScoped(Effect.retry(alone(progress.settle), Schedule.spaced(settleMillis)))

      const take = Effect.fnUntraced(function* (site: SiteRow, part: ImportPart) {
        if (!lease.isCounting()) return yield* ServiceUnavailable.of(lease.refusal(), { code: "standby" })
        yield* settleOrAway(progress)
        const { logged, next, root, salt } = yield* beginOrAway(repository, site, part)
        if (part.offset > next) return yield* new ImportGap({ next })
        const lines = new ImportLines({ site, root, salt, lookups })
        yield* lines.look(part, next)
        yield* appendLines(
          log,
          lines.accepted.filter(({ line }) => line >= logged),
          (line) => progress.note(site.dataset, root, line + 1)
        )
        const { bots, dropped, errors, failed, stored } = lines.tally()
        const reached = Math.max(next, part.offset + part.lines.length)
        const day = dayOf(yield* Clock.currentTimeMillis)
        const drops = lines.drops().map(({ count, drop }) => ({
          dataset: site.dataset,
          day,
          reason: drop.reason,
          name: nameToCount(drop.bot),
          count
        }))
        const outcome = { next: reached, isLast: part.isLast, stored, failed, dropped, drops }
        yield* storeAway(repository.advance(site.dataset, root, outcome))
        progress.told(site.dataset, root)
        yield* settleOrAway(progress)
        return { next: reached, stored, dropped, bots, errors, failed }
      })

      return Imports.of({
        take: (site, part) => alone(take(site, part)),
        list: (site) => Effect.map(storeAway(repository.list(site.dataset)), (rows) => rows.map(importOf))
      })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provide(ImportsRepository.layer))
}

/** Pause while Postgres is away. */
const settleMillis = 5_000

const settleOrAway = (progress: ImportProgress) => storeAway(progress.settle)

const beginOrAway = (repository: ImportsRepository["Service"], site: SiteRow, part: ImportPart) =>
  storeAway(repository.begin(site, part.name, part.continues))

const importOf = (row: ImportRow): Import => ({
  name: row.name,
  continues: row.part_of,
  lines: row.next,
  stored: row.stored,
  failed: row.failed,
  dropped: row.dropped,
  startedAt: row.begun_at.toISOString(),
  updatedAt: row.updated_at.toISOString(),
  finishedAt: row.finished_at?.toISOString() ?? null
})
