import { Deferred, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import * as Job from "#src/infra/jobs/Job.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import * as Sweeps from "#src/infra/jobs/Sweeps.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { deadSites, forgetPurged } from "./PurgeLook.ts"
import { type Purge, purgeQueue, Purges } from "./Purges.ts"
import { dropDeleted } from "./RowDeletion.ts"
import { purgeSite } from "./SitePurge.ts"

/** Looks whether this process counts. */
const lookMillis = 500

const look = Effect.gen(function* () {
  yield* (yield* Purges).sites(yield* deadSites)
  yield* forgetPurged
  return Job.done()
})

const disk = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const mayHaveMore = yield* dropDeleted(yield* ClickHouse)
  return mayHaveMore ? Job.later(limits.purgeRestMillis) : Job.done()
})

const handle = Effect.fnUntraced(function* (payload: Purge) {
  if (payload.kind !== "site") return yield* payload.kind === "look" ? look : disk
  const leftMillis = yield* purgeSite(payload.site)
  return leftMillis > 0 ? Job.later(leftMillis) : Job.done()
})

/** Works on purges until its scope closes, and then leaves at once: all of them may be cut off and done again. */
const work = Effect.gen(function* () {
  const { limits } = yield* AppConfig
  const jobs = yield* Jobs
  const left = yield* Deferred.make<void>()
  yield* jobs.work(purgeQueue, {
    concurrency: 1,
    attemptMillis: limits.purgeAttemptMillis,
    handle: ({ payload }) =>
      Effect.raceFirst(
        handle(payload),
        Effect.map(Deferred.await(left), () => Job.later(0))
      )
  })
  yield* Effect.addFinalizer(() => Deferred.succeed(left, undefined))
})

/** Purges are done by the process that counts: each may have a ClickHouse of its own, of which its is the one that is shown. */
const whileCounting = Effect.gen(function* () {
  const { isCounting } = yield* CountingLease
  const until = (state: boolean) =>
    Effect.gen(function* () {
      while (isCounting() !== state) yield* Effect.sleep(lookMillis)
    })
  while (true) {
    yield* until(true)
    yield* Effect.scoped(Effect.andThen(work, until(false)))
  }
})

/** A sweep may run in any process: it leaves the work to the one that counts. */
const sweeps = Layer.merge(
  Sweeps.layer({
    name: "analytics-purges",
    every: "purgeLookMillis",
    run: Effect.flatMap(Purges, ({ step }) => step("look"))
  }),
  Sweeps.layer({
    name: "analytics-disk",
    every: "purgeDiskMillis",
    run: Effect.flatMap(Purges, ({ step }) => step("disk"))
  })
)

export const layer = Layer.merge(Layer.effectDiscard(Effect.forkScoped(whileCounting)), sweeps)
