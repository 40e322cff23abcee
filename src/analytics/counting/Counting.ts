import { Clock, Context, Deferred, Effect, Fiber, Layer, Scope } from "effect"
import type { DurableLog } from "#streams/kernel/DurableLog.ts"
import { AppConfig, type Config } from "#src/Config.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { EventDrain } from "../store/EventDrain.ts"
import { EventIds } from "../ingest/EventIds.ts"
import { EventLog, ImportLog } from "../ingest/EventLog.ts"
import { Realtime, refill } from "../reads/Realtime.ts"
import { SiteDirectory } from "../sites/Sites.ts"
import { idsOfOthers } from "./CountedIds.ts"
import { CountingLease, LeaseState } from "./CountingLease.ts"
import { type Counter, LeaseKeeper } from "./LeaseKeeper.ts"
import { makeCountingLeaseRow } from "./CountingLeaseRow.ts"
import { createHash } from "node:crypto"
import { statSync } from "node:fs"
import { hostname } from "node:os"

/**
 * By which name this process holds the lease: the same when it is started again, so that it need not wait for itself. The
 * lock of the log sees to it that one process has a directory; a copy of the directory, or another machine, has another
 * name. Beside a Postgres of its own a process is the only one by design, wherever its data was moved.
 */
const holderName = ({ databaseUrl, dataDir }: Config, logId: bigint): string => {
  if (databaseUrl === undefined) return "embedded"
  const { dev, ino } = statSync(dataDir, { bigint: true })
  return createHash("sha256").update(`${logId} ${hostname()} ${dev}:${ino}`).digest("base64url").slice(0, 22)
}

/** The lease as the parts of counting see it, and its keeper, which does nothing before `start`. */
class Keeping extends Context.Service<
  Keeping,
  { readonly state: LeaseState; readonly start: (counter: Counter) => Effect.Effect<void> }
>()("signalbox/analytics/counting/Keeping") {}

/**
 * Below all that counts: closed after it, so that the lease is kept while the last events are drained, and then let go.
 */
export const leaseLayer = Layer.effectContext(
  Effect.gen(function* () {
    const { clickhouseUrl, databaseUrl, limits } = yield* AppConfig
    const scope = yield* Scope.Scope
    const isAlone = databaseUrl === undefined
    const lastsMillis = isAlone ? limits.countingAloneLeaseMillis : limits.countingLeaseMillis
    const renewMillis = isAlone ? limits.countingAloneRenewMillis : limits.countingRenewMillis
    const state = new LeaseState(lastsMillis)
    const keeper = new LeaseKeeper({
      state,
      row: yield* makeCountingLeaseRow,
      clickhouse: yield* ClickHouse,
      limits,
      lastsMillis,
      renewMillis,
      isShared: !isAlone && clickhouseUrl !== undefined
    })
    yield* Effect.addFinalizer(() => keeper.release)
    const start = Effect.fnUntraced(function* (counter: Counter) {
      const settled = yield* Deferred.make<void>()
      yield* Effect.forkIn(keeper.run(counter, settled), scope)
      // A store that hangs must not delay the start: its answer is handled later.
      yield* Effect.timeoutOption(Deferred.await(settled), startMillis)
    })
    return Context.make(CountingLease, state).pipe(Context.add(Keeping, { state, start }))
  })
)

const startMillis = 2_000

/** How long a takeover waits for the realtime figures of the last half hour. */
const refillMillis = 2_000

/** Above all that counts: the process may be the one that does, from now on. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const clickhouse = yield* ClickHouse
    const log = yield* EventLog
    const importLog = yield* ImportLog
    const drain = yield* EventDrain
    const directory = yield* SiteDirectory
    const ids = yield* EventIds
    const realtime = yield* Realtime
    const scope = yield* Scope.Scope
    const { start, state } = yield* Keeping
    const unwritten = (of: DurableLog): number => of.nextOffset() - of.durableOffset()
    const behind = (): number => {
      const { batcher, imports } = drain.stats()
      return batcher.behind + imports.behind + unwritten(log) + unwritten(importLog)
    }

    // With its own store no other process has counted before the start: memory's state is read beside it, unchanged.
    let isUpToDate = config.databaseUrl === undefined
    const catchUp = Effect.gen(function* () {
      if (isUpToDate) return void (isUpToDate = false)
      // A site that the process before has reset must not be shown as it was.
      yield* Effect.catch(directory.refreshNow, (error) =>
        Effect.logWarning("Sites are those of a moment ago while this process takes over", error)
      )
      const nowMillis = yield* Clock.currentTimeMillis
      yield* idsOfOthers(clickhouse, log.id, nowMillis, ({ hash, receivedMillis, site }) =>
        ids.learn(site, hash, receivedMillis, nowMillis)
      )
      const filling = yield* Effect.forkIn(refill(realtime).pipe(Effect.provide(services)), scope)
      yield* Effect.timeoutOption(Fiber.await(filling), behind() > 0 ? 0 : refillMillis)
    })
    const services = Context.make(EventLog, log).pipe(Context.add(ClickHouse, clickhouse))
    yield* Effect.addFinalizer(() => Effect.sync(() => state.close()))
    yield* start({ holder: holderName(config, log.id), behind, catchUp, nextOffset: log.nextOffset })
  })
)
