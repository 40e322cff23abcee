import { Clock, Effect, Exit } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { TooManySessions } from "#actors/agents/StepStore.ts"
import type { Limits } from "#src/Limits.ts"
import type { SessionFacts, SessionState } from "#streams/agents/SessionRecord.ts"
import { factRow, rowsText, stateRow } from "./SessionColumns.ts"

export interface NewSession {
  readonly facts: SessionFacts
  readonly state: SessionState
}

type Created = Exit.Exit<void, TooManySessions>

/** Sessions of `owner` as new rows, where their keys have room for them. */
export class SessionCreates {
  private readonly sql: SqlClient
  private readonly owner: string
  private readonly limits: Limits
  /** sessions that may have been made, but have no client: they would count as live sessions of their keys */
  private readonly unwanted = new Set<string>()

  constructor(sql: SqlClient, owner: string, limits: Limits) {
    this.sql = sql
    this.owner = owner
    this.limits = limits
  }

  /** The asker has gone away, and does not know whether it was made. */
  readonly abandon = ({ facts }: NewSession): void => void this.unwanted.add(facts.id)

  readonly run = (asks: ReadonlyArray<NewSession>): Effect.Effect<ReadonlyArray<Created>, SqlError> =>
    Effect.gen({ self: this }, function* () {
      yield* this.removeUnwanted
      const { limits, owner, sql } = this
      const liveAfter = new Date((yield* Clock.currentTimeMillis) - limits.agentLiveMillis)
      const given = asks.map(({ facts, state }) => ({ ...factRow(facts), ...stateRow(state) }))
      const rows = yield* sql<{ id: string; live: number }>`SELECT id, live
        FROM agent_create(${rowsText(given)}::text::json, ${owner}, ${liveAfter}, ${limits.agentSessionsPerKey})`
      const refused = new Map(rows.map(({ id, live }) => [id, live]))
      return asks.map(({ facts }) => {
        const live = refused.get(facts.id)
        return live === undefined ? Exit.void : Exit.fail(new TooManySessions({ keyId: facts.keyId, live }))
      })
    })

  private readonly removeUnwanted = Effect.suspend(() => {
    const ids = Array.from(this.unwanted)
    if (ids.length === 0) return Effect.void
    return Effect.map(
      this.sql`DELETE FROM agent_sessions WHERE id = ANY(${ids}::text[]) AND epoch = 1 AND steps = 0`,
      () => ids.forEach((id) => this.unwanted.delete(id))
    )
  })
}
