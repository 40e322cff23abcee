import { Context, Effect, Layer, type Scope } from "effect"
import { limits } from "#src/Limits.ts"

/**
 * The state of one component. `degraded`: it lacks something that `detail` names, and traffic is still served.
 * `standby`: it is well, and another process does its work.
 */
export interface ComponentState {
  readonly status: "up" | "standby" | "degraded" | "down"
  readonly detail?: string
}

export const up: ComponentState = { status: "up" }
export const degraded = (detail: string): ComponentState => ({ status: "degraded", detail })

interface ReadinessReport {
  readonly status: "ready" | "unready" | "draining"
  readonly components: Readonly<Record<string, ComponentState>>
}

/**
 * The contents of `/readyz`. Each part of the server registers a check of its own; a part that is `down` makes the
 * server unready (503), so a dispensable part (Postgres: keys are served from memory) reports `degraded`.
 */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** the check is asked at every report, for at most `readinessCheckMillis`, until the scope closes */
    register(name: string, check: Effect.Effect<ComponentState>): Effect.Effect<void, never, Scope.Scope>
    /** from now on the server is not ready: the first step of a shutdown */
    readonly drain: Effect.Effect<void>
    readonly report: Effect.Effect<ReadinessReport>
    /** one component alone; undefined: there is none of this name */
    readonly ask: (name: string) => Effect.Effect<ComponentState | undefined>
  }
>()("signalbox/infra/Readiness") {
  static readonly layer = Layer.sync(Readiness, () => make())
}

const make = (): Readiness["Service"] => {
  const checks = new Map<string, Effect.Effect<ComponentState>>()
  let isDraining = false
  return {
    register: (name, check) =>
      Effect.acquireRelease(
        Effect.sync(() => checks.set(name, check)),
        () => Effect.sync(() => checks.delete(name))
      ).pipe(Effect.asVoid),
    drain: Effect.sync(() => {
      isDraining = true
    }),
    ask: (name) =>
      Effect.suspend((): Effect.Effect<ComponentState | undefined> => {
        const check = checks.get(name)
        return check === undefined ? Effect.succeed(undefined) : bounded(check)
      }),
    report: Effect.gen(function* () {
      const states = yield* Effect.forEach(
        checks,
        ([name, check]) => Effect.map(bounded(check), (state) => [name, state] as const),
        { concurrency: "unbounded" }
      )
      const isDown = states.some(([, state]) => state.status === "down")
      return {
        status: isDraining ? ("draining" as const) : isDown ? ("unready" as const) : ("ready" as const),
        components: Object.fromEntries(states)
      }
    })
  }
}

const bounded = (check: Effect.Effect<ComponentState>): Effect.Effect<ComponentState> =>
  check.pipe(
    Effect.timeoutOrElse({
      duration: limits.readinessCheckMillis,
      orElse: () =>
        Effect.succeed<ComponentState>({
          status: "down",
          detail: `no answer in ${limits.readinessCheckMillis} ms`
        })
    }),
    Effect.catchDefect(() => Effect.succeed<ComponentState>({ status: "down", detail: "the check failed" }))
  )
