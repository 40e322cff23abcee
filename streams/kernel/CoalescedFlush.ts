import { Clock, Deferred, Effect, Scope } from "effect"

interface SharedFlushOptions<E> {
  /** makes visible what had been accepted when it starts */
  readonly flush: Effect.Effect<void, E>
  /** whether there is anything to make visible */
  readonly isPending: () => boolean
  /** flushes start at least this far apart */
  readonly everyMillis: number
}

/**
 * One flush for all readers that wait for one: a reader shares the flush that has not started yet. So however many
 * read, flushes come no closer than `everyMillis`, and each reader's covers what was accepted before it asked.
 */
export const make = Effect.fnUntraced(function* <E>({
  everyMillis,
  flush,
  isPending
}: SharedFlushOptions<E>): Effect.fn.Return<Effect.Effect<void, E>, never, Scope.Scope> {
  const scope = yield* Scope.Scope
  let waiting: Deferred.Deferred<void, E> | undefined
  let startedAtMillis = Number.NEGATIVE_INFINITY

  const start = (shared: Deferred.Deferred<void, E>) =>
    Effect.gen(function* () {
      const passedMillis = (yield* Clock.currentTimeMillis) - startedAtMillis
      // A clock that jumped back must not lengthen a wait.
      yield* Effect.sleep(Math.max(0, Math.min(everyMillis, everyMillis - passedMillis)))
      startedAtMillis = yield* Clock.currentTimeMillis
      waiting = undefined
      yield* flush
    }).pipe(Effect.onExit((exit) => Deferred.done(shared, exit)))

  return Effect.suspend(() => {
    if (waiting !== undefined) return Deferred.await(waiting)
    if (!isPending()) return Effect.void
    const shared = Deferred.makeUnsafe<void, E>()
    waiting = shared
    // It starts at once: a fiber that is interrupted before it runs would leave its readers waiting.
    return Effect.andThen(
      Effect.forkIn(start(shared), scope, { startImmediately: true }),
      Deferred.await(shared)
    )
  })
})
