import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AgentSessions } from "#actors/agents/AgentSessions.ts"
import { SessionPlacement } from "./SessionPlacement.ts"
import { SessionsRepository } from "./store/SessionsRepository.ts"

/** Ends a session at its owner's request. */
export class SessionEnder extends Context.Service<
  SessionEnder,
  {
    /** Ends a session at once and for good, and tells its client if there is one. */
    readonly end: (sessionId: string) => Effect.Effect<void, SqlError>
  }
>()("signalbox/agents/SessionEnder") {
  static readonly layer = Layer.effect(
    SessionEnder,
    Effect.gen(function* () {
      const sessions = yield* AgentSessions
      const homes = yield* SessionPlacement
      const repository = yield* SessionsRepository
      const atHome = (id: string) => {
        if (!homes.isHere(id)) return homes.endThere(id)
        const session = sessions.peek(id)
        return session === undefined ? Effect.void : sessions.end(session, "ended_by_owner")
      }
      return SessionEnder.of({
        // Then its row, for a session that no process has in memory, or whose home does not answer: a process that has
        // it all the same can write nothing more.
        end: (id) =>
          Effect.andThen(
            Effect.catchTag(atHome(id), "HomeAway", () => Effect.void),
            repository.end(id)
          )
      })
    })
  )
}
