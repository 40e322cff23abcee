import { Effect, Layer, Schedule } from "effect"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { AppConfig } from "#src/Config.ts"
import { SessionPlacement } from "../SessionPlacement.ts"
import { SessionSweep } from "../store/SessionSweep.ts"

/**
 * Maintenance of sessions apart from requests: attached ones are marked as alive, long idle ones leave memory, and the
 * unfinished work of a dead process is taken over.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const sessions = yield* AgentSessions
    const homes = yield* SessionPlacement
    const sweep = yield* SessionSweep
    const { limits } = yield* AppConfig

    const touch = Effect.suspend(() =>
      sweep.touch(
        [...sessions.all()].filter(({ client }) => client !== undefined).map(({ facts }) => facts.id)
      )
    )
    /** A claim restarts the work that was under way. */
    const adopt = Effect.flatMap(Effect.timeout(sweep.abandoned, limits.agentStoreMillis), (ids) =>
      Effect.forEach(
        ids.filter((id) => homes.isHere(id)),
        (id) =>
          Effect.catchCause(sessions.acquire(id), (cause) =>
            Effect.logWarning(`The session ${id} could not be taken over`, cause)
          ),
        { concurrency: 16, discard: true }
      )
    )
    const care = <E>(what: string, work: Effect.Effect<void, E>, everyMillis: number) =>
      Effect.forkScoped(
        Effect.repeat(
          Effect.catchCause(work, (cause) => Effect.logWarning(`Sessions could not be ${what}`, cause)),
          Schedule.spaced(everyMillis)
        )
      )
    // One answer that is lost must not be the last sign of life.
    yield* care("said to live", Effect.timeout(touch, limits.agentTouchMillis), limits.agentTouchMillis)
    yield* care("taken over", adopt, limits.agentAdoptMillis)
    yield* care("let go", sessions.sweep, limits.agentAdoptMillis)
  })
)
