import { Clock, Context, Effect, Layer } from "effect"
import { AppConfig } from "#src/Config.ts"
import { SessionDirectory, type SessionRow } from "./Sessions.ts"

/**
 * Writes down that sessions are used, which keeps them from ending: not each time, and beside the request, which does not
 * wait for it.
 */
export class SessionUses extends Context.Service<
  SessionUses,
  { readonly note: (session: SessionRow) => Effect.Effect<void> }
>()("signalbox/accounts/SessionUses") {
  static readonly layer = Layer.effect(
    SessionUses,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const directory = yield* SessionDirectory
      const scope = yield* Effect.scope
      /** by the ids of sessions whose use is being written, or was not: when the write began */
      const tried = new Map<string, number>()

      const write = (id: string, now: number) =>
        directory.update(id, undefined, { used_at: new Date(now) }).pipe(
          Effect.andThen(Effect.sync(() => tried.delete(id))),
          Effect.catchTag("NotFound", () => Effect.sync(() => tried.delete(id))),
          Effect.catch((error) => Effect.logWarning("the use of a session was not written down", error))
        )
      return SessionUses.of({
        note: Effect.fnUntraced(function* ({ id, used_at }) {
          const now = yield* Clock.currentTimeMillis
          if (now - used_at.getTime() < limits.sessionTouchMillis) return
          if (now - (tried.get(id) ?? -Infinity) < limits.sessionTouchRetryMillis) return
          tried.set(id, now)
          yield* Effect.forkIn(write(id, now), scope)
        })
      })
    })
  )
}
