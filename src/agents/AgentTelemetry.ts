import { Effect, Layer } from "effect"
import type { AgentSession } from "#actors/agents/AgentSession.ts"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { Readiness } from "#src/infra/telemetry/Readiness.ts"
import * as SampledMetrics from "#actors/kernel/SampledMetrics.ts"

/** The line "agents" of `/readyz`. Postgres and the models, which sessions need, have lines of their own. */
export const readiness = Layer.effectDiscard(
  Effect.gen(function* () {
    const { register } = yield* Readiness
    const sessions = yield* AgentSessions
    yield* register(
      "agents",
      Effect.sync(() => ({ status: "up", detail: `${[...sessions.all()].length} sessions in memory` }))
    )
  })
)

/** Metrics of the sessions of this process. */
export const metrics = Layer.effectDiscard(
  Effect.gen(function* () {
    const sessions = yield* AgentSessions
    const gauge = (
      name: string,
      description: string,
      is: (session: AgentSession) => boolean
    ): SampledMetrics.Sample => [
      `signalbox_agent_sessions${name}`,
      description,
      () => {
        let count = 0
        for (const session of sessions.all()) if (is(session)) count++
        return count
      }
    ]
    yield* SampledMetrics.register([
      gauge("", "Sessions of agents in memory", () => true),
      gauge("_attached", "Of them, those with a client", ({ client }) => client !== undefined),
      gauge("_running", "Of them, those that work on a prompt", ({ active }) => active !== undefined),
      gauge("_answering", "Of them, those that a model is answering", ({ isAnswering }) => isAnswering),
      gauge("_waiting", "Of them, those that wait for tools of their client", ({ calls }) => calls.size > 0)
    ])
  })
)
