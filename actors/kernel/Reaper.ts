import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * Sweeps until the scope closes, often enough that an idle actor outstays `maxIdleTime` by a quarter at most, and at
 * least every second pass of a restart window, which is when a given-up actor without callers can be forgotten.
 */
export const run = (
  swept: { readonly sweep: () => void },
  options: { readonly maxIdleTimeMillis: number; readonly restartWindowMillis: number }
): Effect.Effect<void, never, Scope.Scope> => {
  const periodMillis = Math.max(1, Math.min(options.maxIdleTimeMillis / 4, options.restartWindowMillis))
  return Effect.sync(() => swept.sweep()).pipe(
    Effect.delay(periodMillis),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
}
