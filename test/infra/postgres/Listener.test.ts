import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Listener } from "#src/infra/postgres/Listener.ts"
import { abandonedAfter } from "#streams/kernel/AbandonedAfter.ts"
import { eventually } from "#test/harness/Eventually.ts"
import { postgresWire } from "#test/harness/PostgresWire.ts"
import { TestStores } from "#test/harness/TestStores.ts"

const postgres = postgresWire()

const stores = TestStores.layerWith(
  { limits: { listenCheckMillis: 200, listenAnswerMillis: 500, listenRetryMillis: 50 } },
  postgres.wire
)

/** A listener of the test's own, on the connection that it has at first. */
const listenerIn = Effect.fnUntraced(function* (scope: Scope.Scope) {
  const { on } = Context.get(yield* Layer.buildWithScope(Layer.fresh(Listener.layer), scope), Listener)
  const heard: Array<string> = []
  const open = yield* Deferred.make<void>()
  const opened = () => Deferred.doneUnsafe(open, Effect.void)
  yield* Scope.provide(on("words", { heard: (word) => void heard.push(word), opened }), scope)
  yield* Deferred.await(open)
  return heard
})

layer(stores, { excludeTestServices: true })("the connection that listens", (it) => {
  it.effect("is opened again when it is lost and says nothing of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const heard = yield* listenerIn(yield* Effect.scope)
      yield* postgres.lose
      yield* eventually(
        "words are heard again",
        Effect.gen(function* () {
          yield* Effect.timeoutOption(sql`SELECT pg_notify('words', 'hello')`, 500)
          return heard.includes("hello")
        })
      )
    }).pipe(Effect.scoped)
  )

  it.effect("ends while it is lost: no leave is taken of a store that does not answer", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* listenerIn(scope)
      yield* postgres.lose
      const end = yield* Effect.exit(abandonedAfter(Scope.close(scope, Exit.void), 60_000))
      assert.isTrue(Exit.isSuccess(end), "it does not end")
    })
  )
})
