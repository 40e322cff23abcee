import { PgClient } from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Cause, Context, Deferred, Effect, Exit, Latch, Layer, Queue, Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import type { Limits } from "#src/Limits.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"

/** Hears one channel of NOTIFY. */
interface Ear {
  readonly heard: (payload: string) => void
  /** From now on every notice arrives. Earlier ones may have been missed: at the start, and after the connection was lost. */
  readonly opened: () => void
}

/** The one connection of this process that listens, beside those of the pool; opened again when it is lost. */
export class Listener extends Context.Service<
  Listener,
  {
    /** Hears a channel until the scope closes; several may hear the same. */
    readonly on: (channel: string, ear: Ear) => Effect.Effect<void, never, Scope.Scope>
  }
>()("signalbox/infra/Listener") {
  static readonly layer = Layer.effect(
    Listener,
    Effect.gen(function* () {
      const { limits } = yield* AppConfig
      const ears = new Ears()
      yield* Effect.forkScoped(listenForEver(yield* PgClient, ears, limits))
      return Listener.of({
        on: (channel, ear) =>
          Effect.acquireRelease(
            Effect.sync(() => ears.add(channel, ear)),
            () => Effect.sync(() => ears.remove(channel, ear))
          )
      })
    })
  )
}

class Ears {
  /** open while there is a channel to listen on */
  readonly fresh = Latch.makeUnsafe()
  private readonly byChannel = new Map<string, Set<Ear>>()
  /** those on which the present connection listens */
  private readonly listened = new Set<string>()

  add(channel: string, ear: Ear): void {
    const ears = this.byChannel.get(channel)
    if (ears === undefined) this.byChannel.set(channel, new Set([ear]))
    else ears.add(ear)
    if (this.listened.has(channel)) ear.opened()
    else this.fresh.openUnsafe()
  }

  remove(channel: string, ear: Ear): void {
    const ears = this.byChannel.get(channel)
    ears?.delete(ear)
    if (ears?.size === 0) this.byChannel.delete(channel)
  }

  lost(): void {
    this.listened.clear()
    if (this.byChannel.size > 0) this.fresh.openUnsafe()
  }

  unheard(): ReadonlyArray<string> {
    this.fresh.closeUnsafe()
    return Array.from(this.byChannel.keys()).filter((channel) => !this.listened.has(channel))
  }

  opened(channel: string): Effect.Effect<void> {
    this.listened.add(channel)
    return this.each(channel, ({ opened }) => opened())
  }

  /** One that throws takes nothing from the others. */
  each(channel: string, tell: (ear: Ear) => void): Effect.Effect<void> {
    return Effect.forEach(
      this.byChannel.get(channel) ?? [],
      (ear) =>
        Effect.catchCause(
          Effect.sync(() => tell(ear)),
          (cause) => Effect.logError(`A notice on ${channel} was not taken`, cause)
        ),
      { discard: true }
    )
  }
}

const listenForEver = Effect.fnUntraced(function* (pg: PgClient, ears: Ears, limits: Limits) {
  let isAway = false
  const isOpen = Effect.suspend(() => {
    const wasAway = isAway
    isAway = false
    return wasAway ? Effect.logInfo("Postgres is listened to again") : Effect.void
  })
  while (true) {
    yield* ears.fresh.await
    const exit = yield* Effect.exit(Effect.scoped(listen(pg, ears, limits, isOpen)))
    ears.lost()
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) && !isAway) {
      isAway = true
      const problem = Cause.squash(exit.cause)
      yield* Effect.logWarning(
        `The connection that listens to Postgres is lost: ${problem instanceof Error ? problem.message : String(problem)}`
      )
    }
    yield* Effect.sleep(limits.listenRetryMillis)
  }
})

/** Listens until the connection is lost. */
const listen = Effect.fnUntraced(function* (
  pg: PgClient,
  ears: Ears,
  limits: Limits,
  isOpen: Effect.Effect<void>
) {
  const connectionScope = yield* Scope.fork(yield* Effect.scope)
  const connection = yield* Scope.provide(
    Effect.flatMap(PgConnection.make(pg.config), ({ pin }) => pin),
    connectionScope
  )
  const lost = yield* Deferred.make<never, SqlError | Cause.TimeoutError>()
  const orLost = (effect: Effect.Effect<never, SqlError | Cause.TimeoutError, Scope.Scope>) =>
    Effect.forkScoped(Effect.catchCause(effect, (cause) => Deferred.failCause(lost, cause)))
  const hear = Effect.fnUntraced(function* (channel: string) {
    const queue = yield* connection.listen(channel)
    yield* ears.opened(channel)
    const take = Effect.flatMap(Queue.take(queue), ({ payload }) =>
      ears.each(channel, ({ heard }) => heard(payload))
    )
    yield* orLost(Effect.forever(take))
  })
  // A dead wire says nothing by itself, and a listener sends nothing: asked for a word, it is found out.
  const askForAWord = abandonedAfter(connection.query("SELECT 1"), limits.listenAnswerMillis)
  const work = Effect.gen(function* () {
    while (true) {
      yield* Effect.forEach(ears.unheard(), hear, { discard: true })
      yield* isOpen
      yield* Effect.raceFirst(ears.fresh.await, Effect.sleep(limits.listenCheckMillis))
      yield* askForAWord
    }
  })
  // Closed before the driver takes leave of the channels: on a connection that is lost it would wait for an answer for ever.
  return yield* Effect.ensuring(
    Effect.andThen(orLost(work), Deferred.await(lost)),
    Scope.close(connectionScope, Exit.void)
  )
})
