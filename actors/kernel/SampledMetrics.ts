import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"

/**
 * A number for `/metrics` that lives in some state anyway: read when metrics are asked for, free otherwise. One whose name
 * ends in `_total` is a counter, which only rises; the others are gauges.
 */
export type Sample = readonly [name: string, description: string, read: () => number]

const nothing = (): void => undefined

/** Shows the samples on `/metrics` with these labels until the scope closes. */
export const register = (
  samples: ReadonlyArray<Sample>,
  labels: Readonly<Record<string, string>> = {}
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = Context.add(yield* Effect.context<never>(), Metric.CurrentMetricAttributes, labels)
    const registrations = samples.map(([name, description, read]) =>
      name.endsWith("_total")
        ? Metric.registerUnsafe(Metric.counter(name, { description, incremental: true }), context, {
            get: () => ({ count: read(), incremental: true }),
            update: nothing,
            modify: nothing
          })
        : Metric.registerUnsafe(Metric.gauge(name, { description }), context, {
            get: () => ({ value: read() }),
            update: nothing,
            modify: nothing
          })
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => registrations.forEach(({ remove }) => remove())))
  })
