import { Context, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { newId } from "#src/infra/crypto/Tokens.ts"

/**
 * The server processes that own agent sessions. Each notes every few seconds that it is alive; the clock is Postgres's. (The
 * ledger's owners are durable logs, which outlive their process, and are given up after 15 minutes.)
 */
export class AgentOwners extends Context.Service<
  AgentOwners,
  {
    /** this process, by a name that is new with every start */
    readonly owner: string
    /** The live ones among these owners. */
    readonly alive: (owners: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>, SqlError>
  }
>()("signalbox/agents/AgentOwners") {
  static readonly layer = Layer.effect(
    AgentOwners,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { limits } = yield* AppConfig
      const owner = newId("own")
      const beat = sql`INSERT INTO agent_owners (id) VALUES (${owner})
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = clock_timestamp()`
      yield* beat
      // Its sessions need not wait until it counts as dead.
      yield* Effect.addFinalizer(() =>
        Effect.catch(sql`DELETE FROM agent_owners WHERE id = ${owner}`, (error) =>
          Effect.logWarning("sessions of this process are taken over when it counts as dead", error)
        )
      )
      yield* Effect.forkScoped(
        beat.pipe(
          Effect.catch((error) => Effect.logDebug("No sign of life could be given", error)),
          Effect.repeat(Schedule.spaced(limits.agentHeartbeatMillis))
        )
      )
      return AgentOwners.of({
        owner,
        alive: (owners) =>
          Effect.map(
            sql<{ id: string }>`SELECT id FROM agent_owners WHERE id = ANY(${owners}::text[])
              AND heartbeat_at > clock_timestamp() - ${limits.agentOwnerDeadMillis} * interval '1 millisecond'`,
            (rows) => new Set(rows.map(({ id }) => id))
          )
      })
    })
  )
}
