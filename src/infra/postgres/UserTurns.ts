import { Context, Effect, Option, Semaphore } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { storeLimits } from "../StoreLimits.ts"

interface Turns {
  readonly semaphore: Semaphore.Semaphore
  users: number
}

/**
 * Changes of one user that have a connection at once. They may wait for each other's locks for seconds, each with its
 * connection; so others wait here, where they have none, and other users have the rest.
 */
class UserTurns {
  private readonly turns = new Map<string, Turns>()

  take(userId: string): Turns {
    const semaphore = () => Semaphore.makeUnsafe(storeLimits.changesPerUser)
    const turns = this.turns.get(userId) ?? { semaphore: semaphore(), users: 0 }
    turns.users++
    this.turns.set(userId, turns)
    return turns
  }

  giveBack(userId: string, turns: Turns): void {
    turns.users--
    if (turns.users === 0) this.turns.delete(userId)
  }
}

const Current = Context.Reference("signalbox/infra/postgres/UserTurns", {
  defaultValue: () => new UserTurns()
})

/** Runs a change of a user's in its turn; within a transaction at once, as that has a connection already. */
export const inUserTurn =
  (sql: SqlClient, userId: string) =>
  <A, E, R>(change: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      if (Option.isSome(yield* Effect.serviceOption(sql.transactionService))) return yield* change
      const all = yield* Current
      return yield* Effect.acquireUseRelease(
        Effect.sync(() => all.take(userId)),
        ({ semaphore }) => semaphore.withPermits(1)(change),
        (turns) => Effect.sync(() => all.giveBack(userId, turns))
      )
    })
