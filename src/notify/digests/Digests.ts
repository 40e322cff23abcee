import { Context, Effect, Layer, Metric } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { deliveries } from "../delivery/Deliveries.ts"
import { Links } from "../Links.ts"

/** A subscriber for whom something is due, and at which instant it was. */
interface Due {
  readonly subscriber: string
  /** a timestamp as Postgres writes it */
  readonly due: string
  /** messages */
  readonly items: number
}

interface Closed {
  /** messages that go as themselves */
  readonly singles: number
  readonly made: number
  readonly dropped: number
}

const digestsMade = Metric.counter("signalbox_notify_digests_total", {
  description: "Digests that were made of messages",
  incremental: true
})
const itemsReleased = Metric.counter("signalbox_notify_held_alone_total", {
  description: "Messages that were held and went as themselves, as no other was due with them",
  incremental: true
})

/** Digests of messages that are held, each made once when it is due. Source: contract/notify#digests. */
export class Digests extends Context.Service<
  Digests,
  {
    /** Makes those that are due on Postgres's clock; answers how many. A subscriber who is locked is left for the next time. */
    readonly closeDue: Effect.Effect<number, SqlError>
    /** Deletes what is not needed any more: pages that are long gone, and instants of schedules. */
    readonly deleteOld: Effect.Effect<void, SqlError>
  }
>()("signalbox/notify/Digests") {
  static readonly layer = Layer.effect(
    Digests,
    Effect.gen(function* () {
      const { limits, messageDays } = yield* AppConfig
      const sql = yield* SqlClient
      const jobs = yield* Jobs
      const links = yield* Links

      /** Some of them, in one transaction; undefined: nothing was due, or all that was is locked. */
      const closeSome = sql.withTransaction(
        Effect.gen(function* () {
          const due = yield* sql<Due>`SELECT * FROM digests_pick(${limits.digestItemsAtOnce})`
          if (due.length === 0) return undefined
          const ids = due.map(({ items }) => (items > 1 ? newId("dig") : ""))
          const hashes = ids.map((id) => (id === "" ? "" : links.digest(id).hash.toString("hex")))
          const [closed] =
            yield* sql<Closed>`SELECT * FROM digests_close(${due.map(({ subscriber }) => subscriber)}::text[],
            ${due.map((one) => one.due)}::text[], ${ids}::text[], ${hashes}::text[], ${limits.digestPageItems})`
          yield* jobs.offered(deliveries)
          return closed
        })
      )
      const closeDue = Effect.gen(function* () {
        let made = 0
        while (true) {
          const began = performance.now()
          const closed = yield* closeSome
          if (closed === undefined) return made
          // Sends and deliveries have Postgres in between.
          yield* Effect.sleep(limits.digestRest * (performance.now() - began))
          made += closed.made
          yield* Metric.update(digestsMade, closed.made)
          yield* Metric.update(itemsReleased, closed.singles)
        }
      })
      const deleteOld = Effect.gen(function* () {
        yield* sql`DELETE FROM digests WHERE created_at < now() - ${messageDays + limits.goneMessageDays} * interval '1 day'`
        yield* sql`DELETE FROM hold_instants WHERE until < jobs_now() - interval '1 day'`
      })
      return Digests.of({ closeDue, deleteOld })
    })
  )
}

export const sweeps = Layer.merge(
  Sweeps.layer({
    name: "digests",
    every: "digestEveryMillis",
    run: Effect.flatMap(Digests, ({ closeDue }) => closeDue)
  }),
  Sweeps.layer({
    name: "old-digests",
    every: "sweepEveryMillis",
    run: Effect.flatMap(Digests, ({ deleteOld }) => deleteOld)
  })
)
