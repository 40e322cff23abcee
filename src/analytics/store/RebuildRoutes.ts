import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AnalyticsRoomApi } from "#schemas/analytics/AnalyticsRoomApi.ts"
import { CurrentKey } from "#schemas/core/Authorization.ts"
import { dayMillis } from "#streams/analytics/EventTime.ts"
import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"
import { troubleText } from "#src/http/StoreTrouble.ts"
import { CountingLease } from "../counting/CountingLease.ts"
import { Sites } from "../sites/Sites.ts"
import { makeVisitRebuild } from "./VisitRebuild.ts"
import { BadRequest, ServiceUnavailable } from "#schemas/core/Problem.ts"

/** A day as the store counts them; it has days up to 2149-06-06. */
const dayOf = (text: string): number => Math.min(65_535, Date.parse(`${text}T00:00:00Z`) / dayMillis)

const away = (error: SinkUnavailable | ClickHouseUnavailable) =>
  Effect.fail(ServiceUnavailable.of(`${troubleText("The statistics store", error)}; go on with this day`))

export const layer = HttpApiBuilder.group(
  AnalyticsRoomApi,
  "rebuild",
  Effect.fnUntraced(function* (handlers) {
    const sites = yield* Sites
    const rebuild = yield* makeVisitRebuild
    const { whileCounting } = yield* CountingLease
    return handlers.handleAll({
      rebuildVisits: ({ params, payload }) =>
        Effect.gen(function* () {
          const { ownerId: userId } = yield* CurrentKey
          const site = yield* sites.find(params.id, userId)
          const from = dayOf(payload.from ?? "1970-01-01")
          const to = dayOf(payload.to ?? "9999-12-31")
          if (to < from) return yield* BadRequest.of("to: it is before from")
          return yield* whileCounting(
            rebuild({ site: site.dataset, from, to, isCheck: payload.check ?? false })
          )
        }).pipe(
          Effect.catchTags({
            SinkUnavailable: away,
            ClickHouseUnavailable: away,
            ClickHouseFailed: Effect.die
          })
        )
    })
  })
)
