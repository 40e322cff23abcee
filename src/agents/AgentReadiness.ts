import { Effect, Layer } from "effect"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"

/** The line "agents" of `/readyz`. Postgres and the models, which sessions need, have lines of their own. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const sessions = yield* AgentSessions
    yield* register(
      "agents",
      Effect.sync(() => ({ status: "up", detail: `${[...sessions.all()].length} sessions in memory` }))
    )
  })
)
