import { Effect, Layer } from "effect"
import { ClickHouse, type ClickHouseService } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"

/** The test's control of its ClickHouse. */
export interface Outage {
  /** inserts and queries fail */
  isAway: boolean
  /** the next insert never answers */
  isStuck: boolean
}

/** The ClickHouse below it, for inserts and queries as far as the outage lets them through. */
export const switchedBy = (outage: Outage) =>
  Layer.effect(
    ClickHouse,
    Effect.map(ClickHouse, (clickhouse) => {
      const unlessAway = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | ClickHouseUnavailable> =>
        Effect.suspend((): Effect.Effect<A, E | ClickHouseUnavailable> =>
          outage.isAway
            ? Effect.fail(new ClickHouseUnavailable({ problem: "switched off", cause: undefined }))
            : effect
        )
      const service: ClickHouseService = {
        ...clickhouse,
        query: (sql, parameters, settings) => unlessAway(clickhouse.query(sql, parameters, settings)),
        insert: (table, columns, body, options) => {
          const isStuck = outage.isStuck
          outage.isStuck = false
          return isStuck ? Effect.never : unlessAway(clickhouse.insert(table, columns, body, options))
        }
      }
      return service
    })
  )
