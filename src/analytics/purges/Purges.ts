import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import * as Job from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"

/**
 * `site`: what is dead of one site is deleted. `look`: sites that have something dead are found. `disk`: deleted rows leave the
 * disk, a month of a table at a time.
 */
const Purge = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("site"), site: Schema.String }),
  Schema.Struct({ kind: Schema.Literals(["look", "disk"]) })
])
export type Purge = typeof Purge.Type

/** Deletions in ClickHouse. They are tried until they succeed. */
export const purgeQueue = Job.queue("analytics-purges", Purge, { attemptsMax: Infinity })

/** Offers purges, in the transaction of what makes them necessary. A site has one job at most that waits. */
export class Purges extends Context.Service<
  Purges,
  {
    readonly site: (id: string) => Effect.Effect<void, SqlError>
    readonly sites: (ids: ReadonlyArray<string>) => Effect.Effect<void, SqlError>
    readonly step: (kind: "look" | "disk") => Effect.Effect<void, SqlError>
  }
>()("signalbox/analytics/Purges") {
  static readonly layer = Layer.effect(
    Purges,
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const { limits } = yield* AppConfig
      const offer = (ids: ReadonlyArray<string>, notBefore: Date) =>
        Effect.asVoid(
          jobs.offer(
            purgeQueue,
            ids.map((site) => ({
              lane: site,
              id: site,
              payload: { kind: "site" as const, site },
              notBefore
            }))
          )
        )
      return Purges.of({
        site: (id) =>
          Effect.flatMap(Clock.currentTimeMillis, (nowMillis) =>
            offer([id], new Date(nowMillis + limits.purgeDelayMillis))
          ),
        sites: (ids) =>
          Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => offer(ids, new Date(nowMillis))),
        step: (kind) => Effect.asVoid(jobs.offer(purgeQueue, [{ lane: kind, id: kind, payload: { kind } }]))
      })
    })
  )
}
