import { Effect, Schedule } from "effect"
import type { Answer } from "#test/harness/ApiClient.ts"
import { startServer } from "#test/harness/ServerProcess.ts"
import { TestStores } from "#test/harness/TestStores.ts"

/** A second server: a process of its own on the same Postgres, which has everything in a memory of its own. */
export const otherProcess = Effect.flatMap(TestStores, ({ clickhouseUrl, databaseUrl }) =>
  Effect.acquireRelease(
    Effect.promise(() =>
      startServer({ env: { ROOMS: "accounts", DATABASE_URL: databaseUrl, CLICKHOUSE_URL: clickhouseUrl } })
    ),
    (server) => Effect.promise(() => server.dispose())
  )
)

export const becomes = (status: number, ask: Effect.Effect<Answer>) =>
  ask.pipe(
    Effect.repeat({ until: (answer) => answer.status === status, schedule: Schedule.spaced("20 millis") }),
    Effect.timeout("20 seconds")
  )
