import { Effect, Layer, Schedule } from "effect"
import { AppConfig } from "#src/Config.ts"
import type { SchemaIsNewer } from "../postgres/Migrations.ts"
import { ClickHouse, type ClickHouseService } from "./ClickHouse.ts"
import { ClickHouseEndpoint } from "./ClickHouseEndpoint.ts"
import { type ClickHouseFailed, ClickHouseUnavailable } from "./ClickHouseFailed.ts"
import { type ClickHouseMigration, migrate } from "./Migrations.ts"

/** Until the schema is there, every statement fails as it does when ClickHouse is away. */
const whenReady = (clickhouse: ClickHouseService, isReady: () => boolean): ClickHouseService => {
  const gate = <A, E>(use: Effect.Effect<A, E>): Effect.Effect<A, E | ClickHouseUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | ClickHouseUnavailable> =>
      isReady()
        ? use
        : Effect.fail(
            new ClickHouseUnavailable({ problem: "it has not answered since the start", cause: undefined })
          )
    )
  return {
    query: (...statement) => gate(clickhouse.query(...statement)),
    insert: (...statement) => gate(clickhouse.insert(...statement)),
    checkInsert: (...statement) => gate(clickhouse.checkInsert(...statement)),
    command: (...statement) => gate(clickhouse.command(...statement)),
    ping: Effect.suspend(() => (isReady() ? clickhouse.ping : Effect.succeed(false)))
  }
}

/** Pauses between attempts: while the start waits, and when it has gone on. */
const startPauseMillis = 200
const laterPauseMillis = 1_000

/**
 * ClickHouse with today's schema. A server that does not answer holds a start up for `clickhouseWaitMillis` only: events
 * are taken into the log without it, and database and schema are made when it comes. One that answers and refuses (a wrong
 * password, a newer schema) is a fault of the start.
 */
export const layer = (
  migrations: ReadonlyArray<ClickHouseMigration>
): Layer.Layer<
  ClickHouse,
  ClickHouseFailed | ClickHouseUnavailable | SchemaIsNewer,
  ClickHouse | ClickHouseEndpoint | AppConfig
> =>
  Layer.effect(
    ClickHouse,
    Effect.gen(function* () {
      const clickhouse = yield* ClickHouse
      const { makeDatabase } = yield* ClickHouseEndpoint
      const { limits } = yield* AppConfig
      let isReady = false
      const prepare = makeDatabase.pipe(
        Effect.andThen(migrate(migrations)),
        Effect.provideService(ClickHouse, clickhouse),
        Effect.andThen(Effect.sync(() => void (isReady = true)))
      )
      const later = prepare.pipe(
        Effect.tapError((error) => Effect.logDebug("ClickHouse is still not ready", error)),
        Effect.retry(Schedule.spaced(laterPauseMillis)),
        Effect.andThen(Effect.logInfo("ClickHouse answers; its schema is in place"))
      )
      const goOn = Effect.gen(function* () {
        yield* Effect.logWarning(
          "ClickHouse does not answer: starting without it. Events wait in the log, statistics answer 503"
        )
        yield* Effect.forkScoped(later)
      })
      yield* prepare.pipe(
        Effect.retry({
          schedule: Schedule.spaced(startPauseMillis),
          while: (error) => error._tag === "ClickHouseUnavailable"
        }),
        Effect.timeoutOrElse({ duration: limits.clickhouseWaitMillis, orElse: () => goOn })
      )
      return whenReady(clickhouse, () => isReady)
    })
  )
