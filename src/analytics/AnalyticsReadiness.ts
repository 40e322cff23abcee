import { Effect, Layer } from "effect"
import { ClickHouse } from "#src/infra/clickhouse/ClickHouse.ts"
import { ClickHouseEndpoint } from "#src/infra/clickhouse/ClickHouseEndpoint.ts"
import { stateOf } from "#src/infra/drains/Drain.ts"
import { type ComponentState, degraded, Readiness, up } from "#src/infra/telemetry/Readiness.ts"
import { CountingLease, type CountingLeaseService } from "./counting/CountingLease.ts"
import { EventDrain } from "./store/EventDrain.ts"
import { EventLog, ImportLog } from "./ingest/EventLog.ts"

const standby = "events and figures answer 503 here"

/** Another process that counts is no fault of this one: it is ready for everything else. */
const countingOf = ({ state }: CountingLeaseService): ComponentState => {
  switch (state()) {
    case "counting":
      return up
    case "standby":
      return { status: "standby", detail: `another process counts for these stores; ${standby}` }
    case "taking-over":
      return {
        status: "standby",
        detail: `taking over from another process that counted; until then ${standby}`
      }
    case "unconfirmed":
      return degraded(`neither Postgres nor ClickHouse says that this process still counts; ${standby}`)
  }
}

/**
 * Counting, ClickHouse and the event logs on `/readyz`. A store that is away degrades: events are still taken, reads answer
 * 503. Only a log that takes nothing makes the server unready.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const clickhouse = yield* ClickHouse
    const { damage } = yield* ClickHouseEndpoint
    const [log, importLog] = [yield* EventLog, yield* ImportLog]
    const drain = yield* EventDrain
    const lease = yield* CountingLease
    yield* register(
      "analytics",
      Effect.sync(() => countingOf(lease))
    )
    yield* register(
      "clickhouse",
      Effect.map(clickhouse.ping, (answers) => {
        if (!answers) return degraded("away: events wait in the log, statistics answer 503")
        return damage === undefined ? up : degraded(damage)
      })
    )
    yield* register(
      "log",
      Effect.sync(() => {
        const { failure } = log.stats()
        if (failure !== undefined) return { status: "down" as const, detail: `takes no events (${failure})` }
        const { batcher: live, imports } = drain.stats()
        const imported = imports.behind === 0 ? "" : ` and ${imports.behind} imported ones`
        const waiting = `${live.behind} events${imported} on their way to ClickHouse`
        const trouble = live.trouble ?? imports.trouble
        const { failure: refusal } = importLog.stats()
        return trouble === undefined && refusal !== undefined
          ? degraded(`${waiting}; imports are refused (${refusal})`)
          : stateOf(waiting, "statistics answer 503", trouble)
      })
    )
  })
)
