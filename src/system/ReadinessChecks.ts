import { Effect, Layer } from "effect"
import { RateBuckets } from "#actors/accounts/RateBuckets.ts"
import { KeyDirectory } from "#src/accounts/KeyDirectory.ts"
import { UserDirectory } from "#src/accounts/UserDirectory.ts"
import { EventDrain } from "#src/analytics/EventDrain.ts"
import { EventLog } from "#src/analytics/EventLog.ts"
import { SiteDirectory } from "#src/analytics/SiteDirectory.ts"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { type ComponentState, Readiness } from "#src/infra/telemetry/Readiness.ts"

const up: ComponentState = { status: "up" }
const degraded = (detail: string): ComponentState => ({ status: "degraded", detail })

/**
 * What `/readyz` asks. A store that is away degrades: events are still taken and keys still known, reads answer 503. Only
 * a log that takes nothing makes the server unready.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const directories = [yield* KeyDirectory, yield* UserDirectory, yield* SiteDirectory]
    const clickhouse = yield* ClickHouse
    const log = yield* EventLog
    const drain = yield* EventDrain
    const buckets = yield* RateBuckets

    yield* register(
      "postgres",
      Effect.sync(() => {
        const staleMillis = Math.max(...directories.map((directory) => directory.status().staleMillis))
        return directories.some((directory) => directory.status().suspended)
          ? degraded(
              `away for ${Math.round(staleMillis / 1000)} s: keys and sites are served from memory, ` +
                "revocation within 1 s is suspended"
            )
          : up
      })
    )
    yield* register(
      "clickhouse",
      Effect.map(clickhouse.ping, (answers) =>
        answers ? up : degraded("away: events wait in the log, statistics answer 503")
      )
    )
    yield* register(
      "log",
      Effect.sync(() => {
        const { failure } = log.stats()
        if (failure !== undefined) return { status: "down" as const, detail: `takes no events (${failure})` }
        const { behind } = drain.stats().batcher
        return { ...up, detail: `${behind} events on their way to ClickHouse` }
      })
    )
    yield* register(
      "rate-limits",
      Effect.sync(() =>
        buckets.stats().sharing === "away" ? degraded("Redis is away: every process limits on its own") : up
      )
    )
  })
)
