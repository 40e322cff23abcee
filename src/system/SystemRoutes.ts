import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { PrometheusMetrics } from "effect/observability"
import { AccountsRoomApi } from "#schemas/accounts/AccountsRoomApi.ts"
import { Unready } from "#schemas/system/SystemApi.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"

/** The routes `/healthz`, `/readyz`, `/metrics`. */
export const layer = HttpApiBuilder.group(
  AccountsRoomApi,
  "system",
  Effect.fnUntraced(function* (handlers) {
    const readiness = yield* Readiness
    return handlers.handleAll({
      alive: () => Effect.succeed({ status: "ok" as const }),
      ready: () =>
        Effect.flatMap(readiness.report, (report) =>
          report.status === "ready" ? Effect.succeed(report) : Effect.fail(new Unready(report))
        ),
      metrics: () => PrometheusMetrics.format()
    })
  })
)
